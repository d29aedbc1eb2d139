package redisstream

import (
	"crypto/rand"
	"encoding/hex"
	"os"
)

// randomName returns a name that no other process has.
func randomName() string {
	host, err := os.Hostname()
	if err != nil {
		host = "server"
	}
	return host + "-" + randomDigits()
}

// randomDigits returns 16 hexadecimal digits.
func randomDigits() string {
	var b [8]byte
	rand.Read(b[:])
	return hex.EncodeToString(b[:])
}
