package testserver

import (
	"net"
	"sync"
	"testing"
	"time"
)

// Proxy passes connections on to an address, and can be made to do so badly.
// It ends with the test.
type Proxy struct {
	Addr string

	target   string
	listener net.Listener
	running  sync.WaitGroup

	mu    sync.Mutex
	moved *sync.Cond // a state below has changed
	conns map[net.Conn]bool
	hole  bool // what comes is kept back
	delay time.Duration
	ended bool
}

// NewProxy starts a proxy before target.
func NewProxy(t testing.TB, target string) *Proxy {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	p := &Proxy{Addr: l.Addr().String(), target: target, listener: l, conns: make(map[net.Conn]bool)}
	p.moved = sync.NewCond(&p.mu)
	p.running.Go(p.accept)
	t.Cleanup(p.close)
	return p
}

func (p *Proxy) accept() {
	for {
		conn, err := p.listener.Accept()
		if err != nil {
			return
		}
		p.running.Go(func() { p.serve(conn) })
	}
}

func (p *Proxy) serve(near net.Conn) {
	defer p.drop(near)
	if !p.keep(near) || !p.pass() {
		return
	}
	far, err := net.Dial("tcp", p.target)
	if err != nil {
		return
	}
	defer p.drop(far)
	if !p.keep(far) {
		return
	}
	p.running.Go(func() { p.copy(far, near) })
	p.copy(near, far)
}

// copy copies what comes from src to dst, after a delay, while there is no
// hole.
func (p *Proxy) copy(dst, src net.Conn) {
	defer p.drop(dst)
	defer p.drop(src)
	buf := make([]byte, 32<<10)
	for {
		n, err := src.Read(buf)
		if n > 0 {
			if !p.pass() {
				return
			}
			if _, err := dst.Write(buf[:n]); err != nil {
				return
			}
		}
		if err != nil {
			p.pass() // an end does not get through a hole either
			return
		}
	}
}

// pass waits for what is in the way, and reports false if the proxy has ended.
func (p *Proxy) pass() bool {
	p.mu.Lock()
	delay := p.delay
	p.mu.Unlock()
	time.Sleep(delay)
	p.mu.Lock()
	defer p.mu.Unlock()
	for p.hole && !p.ended {
		p.moved.Wait()
	}
	return !p.ended
}

func (p *Proxy) keep(conn net.Conn) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.conns[conn] = true
	return !p.ended
}

func (p *Proxy) drop(conn net.Conn) {
	conn.Close()
	p.mu.Lock()
	defer p.mu.Unlock()
	delete(p.conns, conn)
}

// Partition lets nothing through from now on, without a word to either side,
// as a network does that has failed.
func (p *Proxy) Partition() { p.set(func() { p.hole = true }) }

// Heal ends a partition. What was kept back gets through, as it may where
// packets were sent again and again.
func (p *Proxy) Heal() { p.set(func() { p.hole = false }) }

// Slow holds back each piece of data for d, either way.
func (p *Proxy) Slow(d time.Duration) { p.set(func() { p.delay = d }) }

// Reset closes all connections.
func (p *Proxy) Reset() {
	p.set(func() {
		for conn := range p.conns {
			conn.Close()
		}
	})
}

func (p *Proxy) set(f func()) {
	p.mu.Lock()
	defer p.mu.Unlock()
	f()
	p.moved.Broadcast()
}

func (p *Proxy) close() {
	p.listener.Close()
	p.set(func() { p.ended = true })
	p.Reset()
	p.running.Wait()
}
