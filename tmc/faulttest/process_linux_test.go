package faulttest

import (
	"bufio"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"os/exec"
	"syscall"
	"testing"
	"time"
)

// process is a node as its parent sees it.
type process struct {
	t      *testing.T
	config nodeConfig
	cmd    *exec.Cmd
	in     io.WriteCloser
	lines  chan []byte
	done   chan struct{}
	base   nodeReport // sum of what earlier lives of the node had counted

	// Of what a node tells once, what is not in a report of total yet.
	stale     time.Duration
	unexcused []string
}

// startNode starts a node, which ends with the test.
func startNode(t *testing.T, config nodeConfig) *process {
	p := &process{t: t, config: config}
	p.start()
	t.Cleanup(p.kill)
	return p
}

func (p *process) start() {
	p.t.Helper()
	config := p.config
	config.Name = fmt.Sprintf("%s-%d", config.Name, time.Now().UnixNano()) // of one life
	text, err := json.Marshal(config)
	if err != nil {
		p.t.Fatal(err)
	}
	cmd := exec.Command(os.Args[0])
	cmd.Env = append(os.Environ(), nodeVariable+"="+string(text))
	cmd.Stderr = logs(p.t, p.config.Name)
	cmd.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
	if p.in, err = cmd.StdinPipe(); err != nil {
		p.t.Fatal(err)
	}
	out, err := cmd.StdoutPipe()
	if err != nil {
		p.t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		p.t.Fatal(err)
	}
	lines, done := make(chan []byte, 1), make(chan struct{})
	go func() {
		defer close(done)
		scanner := bufio.NewScanner(out)
		scanner.Buffer(nil, 1<<20)
		for scanner.Scan() {
			lines <- append([]byte(nil), scanner.Bytes()...)
		}
		cmd.Wait()
	}()
	p.cmd, p.lines, p.done = cmd, lines, done
}

// ask sends a command and returns the answer, with what earlier lives had
// counted added.
func (p *process) ask(command string) nodeReport {
	p.t.Helper()
	if _, err := fmt.Fprintln(p.in, command); err != nil {
		p.t.Fatalf("%s: %v", p.config.Name, err)
	}
	var r nodeReport
	select {
	case line := <-p.lines:
		if err := json.Unmarshal(line, &r); err != nil {
			p.t.Fatalf("%s: %v in %s", p.config.Name, err, line)
		}
	case <-p.done:
		p.t.Fatalf("%s has ended: %v", p.config.Name, p.cmd.ProcessState)
	case <-time.After(30 * time.Second):
		p.t.Fatalf("%s: no answer to %q within 30 s", p.config.Name, command)
	}
	p.stale = max(p.stale, r.Stale)
	p.unexcused = append(p.unexcused, r.Unexcused...)
	r.Requests += p.base.Requests
	r.Failed += p.base.Failed
	r.Plain += p.base.Plain
	r.PlainFails += p.base.PlainFails
	r.OwnStale += p.base.OwnStale
	r.Stats.Reads += p.base.Stats.Reads
	r.Stats.Hits += p.base.Stats.Hits
	r.Stats.Losses += p.base.Stats.Losses
	r.Stats.Dropped += p.base.Stats.Dropped
	return r
}

// kill ends the node as a crash would.
func (p *process) kill() {
	if p.cmd == nil {
		return
	}
	p.cmd.Process.Kill()
	p.end()
}

// restart kills the node and starts it again.
func (p *process) restart() {
	p.base = p.ask("report")
	p.kill()
	p.start()
}

// close ends the node in order, and returns its last answer: its Goroutines are
// those left over.
func (p *process) close() nodeReport {
	p.t.Helper()
	r := p.ask("close")
	p.end()
	if !p.cmd.ProcessState.Success() {
		p.t.Errorf("%s: %v", p.config.Name, p.cmd.ProcessState)
	}
	p.cmd = nil
	return r
}

func (p *process) end() {
	p.in.Close()
	for {
		select {
		case <-p.lines:
		case <-p.done:
			return
		}
	}
}

func (p *process) signal(sig syscall.Signal) {
	p.t.Helper()
	if err := p.cmd.Process.Signal(sig); err != nil {
		p.t.Fatal(err)
	}
}

// logs returns a file for what a process says, which is shown if the test
// fails.
func logs(t *testing.T, name string) *os.File {
	t.Helper()
	f, err := os.CreateTemp(t.TempDir(), name)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		defer f.Close()
		if !t.Failed() {
			return
		}
		data, err := os.ReadFile(f.Name())
		if err != nil {
			t.Log(err)
			return
		}
		const most = 8 << 10
		t.Logf("the last of what %s said:\n%s", name, data[max(0, len(data)-most):])
	})
	return f
}
