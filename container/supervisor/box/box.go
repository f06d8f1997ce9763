//go:build linux

package main

import (
	"bufio"
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

	"slipway/container/supervisor/box/internal/cgroup"
	"slipway/container/supervisor/box/internal/oom"
	"slipway/container/supervisor/box/internal/privs"
	"slipway/container/supervisor/box/internal/proctree"
	"slipway/container/supervisor/box/internal/sched"
	"slipway/container/supervisor/box/internal/step"
	"slipway/container/supervisor/box/internal/workspace"
	"slipway/container/supervisor/internal/wire"
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

// box is the whole state of the supervisor. set, env, files and watchdog are set when it is greeted.
type box struct {
	mux      *wire.Mux
	start    time.Time
	life     *lifeState
	watchdog *watchdog
	ponging  atomic.Bool

	set   wire.Settings
	env   []string // of every command
	files *workspace.Server

	kills    cgroup.Counter // for memory
	refusals cgroup.Counter // of forks
	steps    *step.Pool
	execs    sync.WaitGroup

	mu    sync.Mutex
	users map[user]bool // those that ran something: their files have to be wiped
}

type user struct{ uid, gid int }

func newBox(out io.Writer, score oom.Score) *box {
	return &box{
		mux: wire.NewMux(out), start: time.Now(), life: newLifeState(),
		kills: cgroup.OpenKills(), refusals: cgroup.OpenRefusals(), steps: step.NewPool(score), users: map[user]bool{},
	}
}

// term returns the channel that announces SIGTERM. It is registered here, so that a signal that comes
// early is not lost.
func term() <-chan os.Signal {
	term := make(chan os.Signal, 1)
	signal.Notify(term, unix.SIGTERM)
	return term
}

// runBox is the life of the box. It returns the program's exit code.
func runBox(term <-chan os.Signal) int {
	score := oom.OpenScore() // before Shield: afterwards an unprivileged process may not open it
	children, err := privs.Shield()
	if err != nil {
		complain("start", err)
		return exitStart
	}
	unix.Umask(0)
	_ = syscall.Setgroups(nil) // takes away the groups that the image gives to root; fails without privileges, where it is not needed
	privs.WarmThreads(5)
	sched.Prompt()
	b := newBox(stdout{}, score)
	go proctree.ReapForever(children, b.steps.Ended)
	in := bufio.NewReaderSize(stdin{}, 128<<10)
	if e := b.greet(in, term); e != nil {
		complain(e.reason, nil)
		return e.code
	}
	go b.serve(in)
	go func() {
		e := b.watchdog.watch()
		b.life.end(e.code, e.reason)
	}()
	go func() {
		<-term
		b.life.end(exitStopped, "stopped by a signal")
	}()
	e := b.life.wait()
	b.shutdown(e)
	return e.code
}

// greet waits for Hello, prepares the box and answers. An ending means that the box must end with it.
func (b *box) greet(in io.Reader, term <-chan os.Signal) *ending {
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
		return &ending{exitStopped, "stopped before it was greeted"}
	case <-time.After(helloTime):
		return &ending{exitSilent, "no greeting from the worker"}
	}
	if errors.Is(h.err, io.EOF) {
		return &ending{exitEOF, "stdin ended before the greeting"}
	}
	if h.err != nil || h.frame.Type != wire.Hello {
		return &ending{exitProtocol, "no greeting on stdin: is this box started by hand?"}
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
		return &ending{exitEOF, "stdout is closed"}
	}
	if err != nil {
		return &ending{exitStart, "prepare the box: " + err.Error()}
	}
	b.watchdog = newWatchdog(b.start, b.set.DeadMan, b.set.Lifetime)
	go b.steps.Fill()
	return nil
}

// prepare makes the folders usable and opens the workspace.
func (b *box) prepare() error {
	if _, err := os.Stat("/proc/self/stat"); err != nil {
		return errors.New("/proc is not mounted: processes could not be found")
	}
	b.env = baseEnv(b.set.Home, b.set.Env)
	b.addUser(b.set.UID, b.set.GID)
	own := b.owns(b.set.Workdir)
	if own {
		openUp(b.set.Workdir, workspace.RootMode)
		giveTo(b.set.Workdir, b.set.UID, b.set.GID)
		if err := giveContent(b.set.Workdir, b.set.UID, b.set.GID); err != nil {
			return err
		}
	}
	for _, dir := range b.set.Scratch {
		if b.owns(dir) {
			openUp(dir, 0o1777)
		}
	}
	files, err := workspace.NewServer(b.set.Workdir, b.set.UID, b.set.GID, own)
	b.files = files
	return err
}

// owns says whether dir is the box's own, to change and to empty. In a container every folder is; outside
// of one only what lies in the Root that was made for the box.
func (b *box) owns(dir string) bool {
	return os.Getpid() == 1 || b.set.Root != "" && strings.HasPrefix(dir, b.set.Root+"/")
}

func (b *box) addUser(uid, gid int) {
	b.mu.Lock()
	b.users[user{uid, gid}] = true
	b.mu.Unlock()
}
