package testserver

import (
	"context"
	"fmt"
	"net/http"
)

// client keeps no connections, whose goroutines a test would take for leaks.
var client = &http.Client{Transport: &http.Transport{DisableKeepAlives: true}}

// healthy returns nil if url answers 200.
func healthy(ctx context.Context, url string) error {
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, url, nil)
	if err != nil {
		return err
	}
	response, err := client.Do(request)
	if err != nil {
		return err
	}
	defer response.Body.Close()
	if response.StatusCode != http.StatusOK {
		return fmt.Errorf("%s: %s", url, response.Status)
	}
	return nil
}
