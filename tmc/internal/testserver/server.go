// Package testserver runs the servers that tests need: the real redis-server
// and etcd on loopback, which can be killed, stopped and started again, and a
// proxy before any server that can slow it down or cut it off.
package testserver

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"
)

// Require is the environment variable that, set to 1, makes tests fail whose
// servers are not installed, rather than skip.
const Require = "TMC_REQUIRE_SERVERS"

// Server is a process that serves an address on loopback. It ends with the
// test. Its methods fail the test.
type Server struct {
	Addr string

	t       testing.TB
	command func() *exec.Cmd
	ready   func(ctx context.Context) error
	running *exec.Cmd
	done    chan struct{}
}

// binary returns the path of an installed program, or skips the test.
func binary(t testing.TB, name, debian string) string {
	t.Helper()
	path, err := exec.LookPath(name)
	if err == nil {
		return path
	}
	if os.Getenv(Require) == "1" {
		t.Fatalf("%s is not installed (Debian: %s), and %s=1", name, debian, Require)
	}
	t.Skipf("%s is not installed (Debian: %s)", name, debian)
	return ""
}

// FreeAddr returns an address on loopback where nothing listens.
func FreeAddr(t testing.TB) string {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	return l.Addr().String()
}

// Redis starts a redis-server that keeps nothing on disk: killed, it comes back
// empty.
func Redis(t testing.TB, args ...string) *Server {
	t.Helper()
	path := binary(t, "redis-server", "redis-server")
	s := &Server{Addr: FreeAddr(t), t: t}
	_, port, _ := net.SplitHostPort(s.Addr)
	dir := t.TempDir()
	s.command = func() *exec.Cmd {
		return exec.Command(path, append([]string{"--bind", "127.0.0.1", "--port", port,
			"--save", "", "--appendonly", "no", "--dir", dir}, args...)...)
	}
	s.ready = func(ctx context.Context) error {
		c := redis.NewClient(&redis.Options{Addr: s.Addr, MaxRetries: -1})
		defer c.Close()
		return c.Ping(ctx).Err()
	}
	s.Start()
	t.Cleanup(s.Kill)
	return s
}

// RedisCluster starts a Redis Cluster of one node, which has all slots, and
// serves only commands whose keys are all in one of them.
func RedisCluster(t testing.TB) *Server {
	t.Helper()
	_, bus, _ := net.SplitHostPort(FreeAddr(t))
	s := Redis(t, "--cluster-enabled", "yes", "--cluster-port", bus)
	c := s.Client()
	if err := c.ClusterAddSlotsRange(t.Context(), 0, 16383).Err(); err != nil {
		t.Fatal(err)
	}
	serves := func(ctx context.Context) error {
		c := redis.NewClient(&redis.Options{Addr: s.Addr, MaxRetries: -1})
		defer c.Close()
		info, err := c.ClusterInfo(ctx).Result()
		if err == nil && !strings.Contains(info, "cluster_state:ok") {
			err = errors.New("the cluster is not ready")
		}
		return err
	}
	s.ready = serves
	s.wait()
	return s
}

// Etcd starts an etcd with one member, which keeps its data when it is killed.
func Etcd(t testing.TB) *Server {
	t.Helper()
	path := binary(t, "etcd", "etcd-server")
	s := &Server{Addr: FreeAddr(t), t: t}
	peer, dir := FreeAddr(t), filepath.Join(t.TempDir(), "etcd")
	s.command = func() *exec.Cmd {
		return exec.Command(path, "--data-dir", dir, "--name", "test",
			"--listen-client-urls", "http://"+s.Addr, "--advertise-client-urls", "http://"+s.Addr,
			"--listen-peer-urls", "http://"+peer, "--initial-advertise-peer-urls", "http://"+peer,
			"--initial-cluster", "test=http://"+peer, "--logger", "zap", "--log-level", "error")
	}
	s.ready = func(ctx context.Context) error { return healthy(ctx, "http://"+s.Addr+"/health") }
	s.Start()
	t.Cleanup(s.Kill)
	return s
}

// Program runs a program that serves addr, and is ready when GET of
// http://addr/path says 200. Its output goes to the test's standard error.
func Program(t testing.TB, addr, path string, command func() *exec.Cmd) *Server {
	t.Helper()
	s := &Server{Addr: addr, t: t, command: command}
	s.ready = func(ctx context.Context) error { return healthy(ctx, "http://"+addr+path) }
	s.Start()
	t.Cleanup(s.Kill)
	return s
}

// Start starts the process, and waits until it serves.
func (s *Server) Start() {
	s.t.Helper()
	if s.running != nil {
		s.t.Fatalf("%s: started twice", s.running.Path)
	}
	cmd := s.command()
	if cmd.Stderr == nil {
		cmd.Stderr = os.Stderr
	}
	// Should the test process be killed, so is the server.
	cmd.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
	if err := cmd.Start(); err != nil {
		s.t.Fatalf("starting %s: %v", cmd.Path, err)
	}
	done := make(chan struct{})
	go func() {
		cmd.Wait()
		close(done)
	}()
	s.running, s.done = cmd, done
	s.wait()
}

// wait waits until the process serves.
func (s *Server) wait() {
	s.t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), 30*time.Second)
	defer cancel()
	for s.ready(ctx) != nil {
		select {
		case <-ctx.Done():
			s.t.Fatalf("%s does not serve %s", s.running.Path, s.Addr)
		case <-s.done:
			s.t.Fatalf("%s ended: %v", s.running.Path, s.running.ProcessState)
		case <-time.After(20 * time.Millisecond):
		}
	}
}

// Kill ends the process as a crash would, if it runs.
func (s *Server) Kill() { s.end(syscall.SIGKILL) }

// Terminate asks the process to end, and waits until it has.
func (s *Server) Terminate() { s.end(syscall.SIGTERM) }

func (s *Server) end(sig syscall.Signal) {
	if s.running == nil {
		return
	}
	s.running.Process.Signal(sig)
	select {
	case <-s.done:
	case <-time.After(20 * time.Second):
		s.running.Process.Kill()
		<-s.done
		s.t.Errorf("%s did not end by %v within 20 s", s.running.Path, sig)
	}
	s.running = nil
}

// Pause stops the process without ending it, until Resume.
func (s *Server) Pause() { s.signal(syscall.SIGSTOP) }

// Resume lets a paused process go on.
func (s *Server) Resume() { s.signal(syscall.SIGCONT) }

func (s *Server) signal(sig syscall.Signal) {
	s.t.Helper()
	if err := s.running.Process.Signal(sig); err != nil {
		s.t.Fatalf("%v to %s: %v", sig, s.running.Path, err)
	}
}

// Client returns a client of a Redis server that is closed with the test.
func (s *Server) Client() *redis.Client {
	c := redis.NewClient(&redis.Options{Addr: s.Addr, ContextTimeoutEnabled: true})
	s.t.Cleanup(func() { c.Close() })
	return c
}

// String returns what runs where.
func (s *Server) String() string { return fmt.Sprintf("server on %s", s.Addr) }
