// Command tmc-server finds the hot keys of applications from the reports of
// their SDKs, and pushes them back. Start as many as the reports need: they
// share the work.
//
// With a Redis on this machine, nothing else is needed:
//
//	tmc-server
//
// See docs/operators.md for all options, metrics and pages.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"os"
	"os/signal"
	"syscall"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/collectors"
	"github.com/prometheus/client_golang/prometheus/promhttp"

	"github.com/heavykeeper-go/heavykeeper/tmc/server"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	context.AfterFunc(ctx, stop) // a second signal ends the process at once
	os.Exit(run(ctx, os.Args[1:], os.Getenv, os.Stdout, os.Stderr))
}

// run runs the command until ctx ends, and returns its exit status: 0, 1 for a
// failure or 2 for bad arguments.
func run(ctx context.Context, args []string, getenv func(string) string, stdout, stderr io.Writer) int {
	o, err := parse(args, getenv, stderr)
	switch {
	case errors.Is(err, flag.ErrHelp):
		return 0
	case err != nil:
		fmt.Fprintln(stderr, "tmc-server:", err)
		return 2
	case o.check != "":
		return check(o, stdout, stderr)
	}
	logger := o.logger(stderr)
	if err := serve(ctx, o, logger); err != nil {
		logger.Error("tmc-server ends", "error", err)
		return 1
	}
	logger.Info("tmc-server has ended")
	return 0
}

// serve runs a server and its pages until ctx ends.
func serve(ctx context.Context, o *options, logger *slog.Logger) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	p, err := connect(o, logger)
	if err != nil {
		return err
	}
	defer p.close()
	s, err := server.New(p.config)
	if err != nil {
		return err
	}
	listener, err := net.Listen("tcp", o.listen)
	if err != nil {
		return err
	}
	web := &http.Server{
		Handler: routes(s, p.config.Slot), MaxHeaderBytes: 16 << 10,
		ReadTimeout: 5 * time.Second, WriteTimeout: 30 * time.Second, IdleTimeout: time.Minute,
	}
	failed := make(chan error, 1)
	go func() {
		failed <- web.Serve(listener)
		cancel()
	}()
	logger.Info("tmc-server runs", "name", p.config.Name, "listen", listener.Addr().String(), "transport", o.transport, "push", o.push, "config", o.config)
	err = s.Run(ctx)
	quit, stop := context.WithTimeout(context.Background(), 3*time.Second)
	defer stop()
	if web.Shutdown(quit) != nil {
		web.Close()
	}
	if e := <-failed; !errors.Is(e, http.ErrServerClosed) {
		return e
	}
	if errors.Is(err, context.Canceled) {
		return nil
	}
	return err
}

// routes returns what is served by HTTP.
func routes(s *server.Server, slot time.Duration) http.Handler {
	registry := prometheus.NewRegistry()
	registry.MustRegister(server.NewCollector(s), collectors.NewGoCollector(),
		collectors.NewProcessCollector(collectors.ProcessCollectorOpts{}))
	mux := http.NewServeMux()
	mux.Handle("/", s.Handler())
	mux.Handle("GET /metrics", promhttp.HandlerFor(registry, promhttp.HandlerOpts{}))
	mux.HandleFunc("GET /healthz", func(w http.ResponseWriter, _ *http.Request) { io.WriteString(w, "ok\n") })
	mux.HandleFunc("GET /readyz", func(w http.ResponseWriter, _ *http.Request) {
		stats := s.Stats()
		if time.Since(stats.LastScan) > 5*slot {
			http.Error(w, "no scan of late", http.StatusServiceUnavailable)
			return
		}
		io.WriteString(w, "ok\n")
	})
	return mux
}
