//go:build linux

package main

import (
	"bufio"
	"encoding/binary"
	"errors"
	"io"
	"os"
	"os/signal"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"slipway/container/supervisor/wire"
)

// How the program ends; package supervisor says what each means.
const (
	exitStopped  = 0
	exitEOF      = 70
	exitLifetime = 71
	exitSilent   = 72
	exitProtocol = 73
	exitStart    = 74
)

// helloTime is how long the worker may take to greet.
const helloTime = 20 * time.Second

// box is the whole state of the supervisor.
type box struct {
	mux   *wire.Mux
	set   wire.Settings
	env   []string
	root  tree
	oom   oomCounter
	steps *stepPool

	seen      atomic.Int64 // when the last frame came, by the clock of start
	start     time.Time
	ending    sync.Once
	over      chan verdict
	down      atomic.Bool // everything is being killed
	stopping  chan struct{}
	stopOnce  sync.Once
	stopGrace time.Duration
	ponging   atomic.Bool
	execs     sync.WaitGroup
	quickOps  chan struct{}
	bulkOps   chan struct{}

	mu  sync.Mutex
	ids map[[2]int]bool // who ran something: their files have to be wiped
}

type verdict struct {
	code   int
	reason string
}

func runBox() int {
	children, err := shield()
	if err != nil {
		complain("start", err)
		return exitStart
	}
	term := make(chan os.Signal, 1)
	signal.Notify(term, unix.SIGTERM)
	unix.Umask(0)
	_ = syscall.Setgroups(nil) // the image may give root's groups; unprivileged it fails, and matters not
	warmThreads(5)
	go reapForever(children)
	b := &box{
		mux: wire.NewMux(stdout{}), oom: openOOM(), start: time.Now(),
		steps: &stepPool{pids: map[int]bool{}}, over: make(chan verdict, 1), stopping: make(chan struct{}),
		quickOps: make(chan struct{}, 16), bulkOps: make(chan struct{}, 16), ids: map[[2]int]bool{},
	}
	in := bufio.NewReaderSize(stdin{}, 128<<10)
	if v := b.greet(in, term); v != nil {
		complain(v.reason, nil)
		return v.code
	}
	go b.serve(in)
	go b.watch()
	v := verdict{exitStopped, "stopped by a signal"}
	select {
	case v = <-b.over:
	case <-term:
	}
	b.shutdown(v)
	return v.code
}

// greet waits for Hello, prepares the box and answers. A verdict means that it must end.
func (b *box) greet(in io.Reader, term <-chan os.Signal) *verdict {
	type hello struct {
		frame wire.Frame
		err   error
	}
	got := make(chan hello, 1)
	go func() {
		f, err := wire.ReadFrame(in, wire.Alloc)
		got <- hello{f, err}
	}()
	var h hello
	select {
	case h = <-got:
	case <-term:
		return &verdict{exitStopped, "stopped before it was greeted"}
	case <-time.After(helloTime):
		return &verdict{exitSilent, "no greeting from the worker"}
	}
	if errors.Is(h.err, io.EOF) {
		return &verdict{exitEOF, "stdin ended before the greeting"}
	}
	if h.err != nil || h.frame.Type != wire.Hello {
		return &verdict{exitProtocol, "no greeting on stdin: is this box started by hand?"}
	}
	set, err := wire.DecodeSettings(h.frame.Payload)
	if err == nil {
		b.set = set
		err = b.prepare()
	}
	report := wire.Report{PID: os.Getpid()}
	if err != nil {
		report.Error = err.Error()
	}
	if b.mux.Send(wire.Ready, 0, report.Encode()) != nil {
		return &verdict{exitEOF, "stdout is closed"}
	}
	if err != nil {
		return &verdict{exitStart, "prepare the box: " + err.Error()}
	}
	b.touch()
	go b.steps.fill()
	return nil
}

func (b *box) prepare() error {
	if _, err := os.Stat("/proc/self/stat"); err != nil {
		return errors.New("/proc is not mounted: processes could not be found")
	}
	b.env = baseEnv(b.set.Home, b.set.Env)
	b.useID(b.set.UID, b.set.GID)
	if b.owns(b.set.Workdir) {
		openUp(b.set.Workdir, 0o777)
	}
	for _, dir := range b.set.Scratch {
		if b.owns(dir) {
			openUp(dir, 0o1777)
		}
	}
	fd, err := unix.Open(b.set.Workdir, unix.O_PATH|unix.O_DIRECTORY|unix.O_CLOEXEC, 0)
	if err != nil {
		return &os.PathError{Op: "open workspace", Path: b.set.Workdir, Err: err}
	}
	b.root = newTree(fd)
	return nil
}

// owns says whether dir is the box's own, to change and to empty: in a container
// all folders are; outside only what lies in a Root that was made for it.
func (b *box) owns(dir string) bool {
	return os.Getpid() == 1 || b.set.Root != "" && strings.HasPrefix(dir, b.set.Root+"/")
}

// openUp lets every user into a folder. Whoever owns it needs no capability for that.
func openUp(dir string, mode uint32) {
	var st unix.Stat_t
	if unix.Stat(dir, &st) == nil && int(st.Uid) == os.Geteuid() {
		_ = unix.Chmod(dir, mode)
	}
}

func (b *box) useID(uid, gid int) {
	b.mu.Lock()
	b.ids[[2]int{uid, gid}] = true
	b.mu.Unlock()
}

// serve reads frames until the connection ends. It never waits for anything else.
func (b *box) serve(in io.Reader) {
	for {
		f, err := wire.ReadFrame(in, wire.Alloc)
		if errors.Is(err, wire.ErrProtocol) {
			b.end(exitProtocol, err.Error())
			return
		}
		if err != nil {
			b.end(exitEOF, "the worker is gone")
			return
		}
		b.touch()
		if err := b.handle(f); err != nil {
			b.end(exitProtocol, err.Error())
			return
		}
	}
}

func (b *box) handle(f wire.Frame) error {
	switch f.Type {
	case wire.Ping:
		return b.pong()
	case wire.Open:
		return b.open(f)
	case wire.Stop:
		if len(f.Payload) != 8 {
			return wire.ErrProtocol
		}
		b.stop(time.Duration(binary.BigEndian.Uint64(f.Payload)))
		return nil
	case wire.Data, wire.EOF, wire.WindowUpdate, wire.Cancel:
		return b.mux.Dispatch(f)
	default:
		return wire.ErrProtocol
	}
}

func (b *box) open(f wire.Frame) error {
	if len(f.Payload) == 0 {
		return wire.ErrProtocol
	}
	s, err := b.mux.Accept(f.ID)
	if err != nil {
		return err
	}
	select {
	case <-b.stopping: // Bye is the answer to all that comes now
		return nil
	default:
	}
	kind, params := wire.Kind(f.Payload[0]), f.Payload[1:]
	if kind == wire.KindExec {
		b.execs.Go(func() { b.exec(s, params) })
		return nil
	}
	op := fileOps[kind]
	if op == nil {
		return wire.ErrProtocol
	}
	go b.fileOp(s, kind, op, params)
	return nil
}

// stdin and stdout are used by plain system calls: os.Stdout would end the process at a closed pipe.
type stdin struct{}

func (stdin) Read(p []byte) (int, error) {
	for {
		n, err := unix.Read(0, p)
		switch {
		case err == unix.EINTR:
		case err == unix.EAGAIN:
			wait(0, unix.POLLIN)
		case err != nil:
			return 0, err
		case n == 0:
			return 0, io.EOF
		default:
			return n, nil
		}
	}
}

type stdout struct{}

func (stdout) Write(p []byte) (int, error) {
	sent := 0
	for sent < len(p) {
		n, err := unix.Write(1, p[sent:])
		switch err {
		case nil:
			sent += n
		case unix.EINTR:
		case unix.EAGAIN:
			wait(1, unix.POLLOUT)
		default:
			return sent, err
		}
	}
	return sent, nil
}

func wait(fd int32, events int16) {
	_, _ = unix.Poll([]unix.PollFd{{Fd: fd, Events: events}}, -1)
}
