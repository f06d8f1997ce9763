//go:build linux

package main

import (
	"context"
	"errors"
	"io"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"slipway/container"
	"slipway/container/supervisor"
	"slipway/container/supervisor/box/internal/boxtest"
	"slipway/container/supervisor/internal/wire"
	"slipway/test/eventually"
)

func itoa(n int) string { return strconv.Itoa(n) }

// However a box ends, its processes are dead and its folders empty before it exits, and the exit code says why.
func TestEnd(t *testing.T) {
	for _, tt := range []struct {
		name   string
		end    func(*rig)
		code   int
		err    error  // of the command that runs
		reason string // part of it
	}{
		{"stop", func(r *rig) { _ = r.Stop(r.t.Context(), 200*time.Millisecond) }, exitStopped, nil, ""},
		{"connection closed", func(r *rig) { _ = r.Close() }, exitEOF, container.ErrStopped, ""},
		{"SIGTERM", func(r *rig) { _ = r.cmd.Process.Signal(unix.SIGTERM) }, exitStopped, container.ErrBoxLost, "stopped by a signal"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			eachKind(t, func(t *testing.T, alone bool) {
				r := setup(t, alone)
				done := r.begin("trap '' TERM; " + hiding + "mkdir -p a/b; echo x > a/b/f; chmod 0 a/b; touch $HOME/t; echo ready; while :; do mkdir -p new; echo x >> new/f; done") // it writes until it is dead
				tt.end(r)
				got := <-done
				if tt.err != nil && (!errors.Is(got.err, tt.err) || !strings.Contains(got.err.Error(), tt.reason)) {
					t.Errorf("the command: got %v, want %v: %s", got.err, tt.err, tt.reason)
				}
				if tt.err == nil && got.err == nil && (!got.Canceled || got.Signal != "SIGKILL") {
					t.Errorf("the command: got %+v, want it canceled by SIGKILL after its grace", got.Exit)
				}
				r.ended(tt.code)
			})
		})
	}
}

func TestLifetimeOver(t *testing.T) {
	eachKind(t, func(t *testing.T, alone bool) {
		r := setup(t, alone, func(c *supervisor.Config) { c.Lifetime, c.DeadMan = 500*time.Millisecond, 400*time.Millisecond })
		_, err := r.Exec(t.Context(), sh(hiding+"sleep 600"))
		if !errors.Is(err, container.ErrBoxLost) {
			t.Errorf("Exec: got %v, want ErrBoxLost", err)
		}
		if code := r.wait(); code != exitLifetime && code != exitSilent { // a busy machine may starve the session's beat
			t.Errorf("exit code: got %d, want %d", code, exitLifetime)
		}
		r.ended(r.wait())
	})
}

// A worker that holds the connection and says nothing more is gone, also if it does not read either.
func TestSilentWorker(t *testing.T) {
	eachKind(t, func(t *testing.T, alone bool) {
		r, conn := greeted(t, alone, 500*time.Millisecond)
		for id := range uint32(4) {
			send(t, conn, openExec(id+1, wire.Command{Args: []string{"yes"}, UID: -1, GID: -1}))
		}
		r.ended(exitSilent)
	})
}

func TestProtocolBroken(t *testing.T) {
	for name, b := range map[string][]byte{
		"unknown type": {99, 0, 0, 0, 0, 0, 0, 0, 0},
		"second hello": wire.AppendFrame(nil, wire.Hello, 0, nil),
		"no kind":      wire.AppendFrame(nil, wire.Open, 1, nil),
		"unknown kind": wire.AppendFrame(nil, wire.Open, 1, []byte{200}),
		"bad command":  wire.AppendFrame(nil, wire.Open, 1, []byte{byte(wire.KindExec), 1}),
		"short stop":   wire.AppendFrame(nil, wire.Stop, 0, []byte{1}),
		"id of before": append(wire.AppendFrame(nil, wire.Open, 2, []byte{byte(wire.KindWalk)}), wire.AppendFrame(nil, wire.Open, 1, []byte{byte(wire.KindWalk)})...),
	} {
		t.Run(name, func(t *testing.T) {
			boxtest.NeedsShield(t)
			r, conn := greeted(t, false, time.Minute)
			go func() { _, _ = io.Copy(io.Discard, conn) }()
			send(t, conn, b)
			r.ended(exitProtocol)
		})
	}
}

// Bye is the last word: when it comes, all is dead and wiped. It says the code and the reason.
func TestByeComesLast(t *testing.T) {
	eachKind(t, func(t *testing.T, alone bool) {
		r, conn := greeted(t, alone, time.Minute)
		send(t, conn, openExec(1, wire.Command{Args: []string{"/bin/sh", "-c", "echo x > f; trap '' TERM; echo ready; while :; do sleep 0.1; done"}, UID: -1, GID: -1}))
		ended := false
		for {
			f, err := wire.ReadFrame(conn, wire.Alloc)
			if err != nil {
				t.Fatalf("no Bye: %v", err)
			}
			switch f.Type {
			case wire.Stdout:
				send(t, conn, wire.AppendFrame(nil, wire.Stop, 0, make([]byte, 8)))
			case wire.End:
				ended = true
			case wire.Bye:
				d := wire.NewDec(f.Payload)
				if code, reason := d.Uint(), d.Str(); code != exitStopped || reason != "stopped" {
					t.Errorf("Bye: got %d, %q; want %d, stopped", code, reason, exitStopped)
				}
				if _, err := os.Stat(filepath.Join(r.root, "work/f")); !os.IsNotExist(err) {
					t.Errorf("a file at Bye: %v, want it gone", err)
				}
				if left := boxtest.Marked(r.mark); len(left) > 0 && !alone { // process 1 carries no mark
					t.Errorf("processes at Bye: %v, want none", left)
				}
				if !ended {
					t.Error("the command had no End before Bye, want its exit at a Stop")
				}
				r.ended(exitStopped)
				return
			}
		}
	})
}

// A stop gives the commands their grace, takes no new request meanwhile, and only the first one counts.
func TestStopIsGentle(t *testing.T) {
	eachKind(t, func(t *testing.T, alone bool) {
		r := setup(t, alone)
		done := r.begin("trap 'sleep 0.5; echo bye; exit 3' TERM; echo ready; while :; do sleep 0.05; done")
		stopped := make(chan error, 1)
		go func() { stopped <- r.Stop(t.Context(), time.Minute) }()
		got := <-done
		if err := <-stopped; err != nil {
			t.Errorf("Stop: %v", err)
		}
		if got.err == nil && (got.Code != 3 || !got.Canceled || !strings.HasSuffix(got.output, "bye\n")) {
			t.Errorf("the command: got %+v, %q; want code 3 and its last words", got.Exit, got.output)
		}
		if got.err != nil {
			t.Errorf("the command: got %v, want its exit", got.err)
		}
		r.ended(exitStopped)
	})
}

func TestNothingNewWhileStopping(t *testing.T) {
	boxtest.NeedsShield(t)
	r, conn := greeted(t, false, time.Minute)
	send(t, conn, openExec(1, wire.Command{Args: []string{"/bin/sh", "-c", "trap 'exit 3' TERM; echo ready; while :; do sleep 0.05; done"}, UID: -1, GID: -1}))
	touch := wire.Command{Args: []string{"touch", "new"}, UID: -1, GID: -1}
	for {
		f, err := wire.ReadFrame(conn, wire.Alloc)
		if err != nil || f.Type == wire.Bye {
			break
		}
		if f.Type == wire.Stdout {
			b := wire.AppendFrame(nil, wire.Stop, 0, []byte{0, 0, 0, 1, 0, 0, 0, 0})
			send(t, conn, append(b, openExec(2, touch)...))
		}
		if f.ID == 2 {
			t.Errorf("an answer to what came while stopping: %+v, want none but Bye", f)
		}
	}
	r.ended(exitStopped)
}

// A dead step process means that the exit is not known. Its tree, which is then the box's, is killed; others go on.
func TestStepProcessKilled(t *testing.T) {
	eachKind(t, func(t *testing.T, alone bool) {
		r := setup(t, alone)
		beside := r.begin("echo ready; until [ -e go ]; do sleep 0.02; done; echo went on")
		done := r.begin(hiding + "echo $PPID > step; echo ready; sleep 600; exit 0")
		b, err := os.ReadFile(filepath.Join(r.root, "work/step"))
		if err != nil {
			t.Fatal(err)
		}
		if alone { // the pid is that of the box's namespace, which only a process in it can use
			if x, out := r.run("kill -KILL "+strings.TrimSpace(string(b))+" 2>&1", asRoot); x.Code != 0 {
				t.Skipf("needs a command that may kill the step process: %s", out)
			}
		} else if pid, _ := strconv.Atoi(strings.TrimSpace(string(b))); unix.Kill(pid, unix.SIGKILL) != nil {
			t.Fatalf("kill the step process %d", pid)
		}
		if got := <-done; !errors.Is(got.err, container.ErrBoxLost) {
			t.Errorf("got %+v, %v; want ErrBoxLost", got.Exit, got.err)
		}
		if left := boxtest.Marked(r.mark); len(left) > 4 { // the other command with its sleep
			t.Errorf("processes %v are left, want those of the other command", left)
		}
		if x, _ := r.run("touch go; exit 4"); x.Code != 4 {
			t.Errorf("the next command: got %+v, want code 4", x)
		}
		if got := <-beside; got.err != nil || got.output != "ready\nwent on\n" {
			t.Errorf("the command beside: got %v, %q; want it to go on", got.err, got.output)
		}
	})
}

func asRoot(c *container.Command) { c.User = &container.User{} }

// As process 1 the box stops all of a user at once, so that no fork bomb outruns it. What other commands of the user run goes on.
func TestForkBomb(t *testing.T) {
	eachKind(t, func(t *testing.T, alone bool) {
		if _, err := os.Stat("/bin/bash"); err != nil {
			t.Skip("needs bash")
		}
		r := setup(t, alone)
		beside := r.begin("echo ready; until [ -e go ]; do sleep 0.05; done; echo went on")
		x, _ := r.run("exec bash -c 'ulimit -u 300; f() { f | f & }; f 2>/dev/null; sleep 600'", func(c *container.Command) { c.Timeout = eventually.Settled })
		if !x.TimedOut {
			t.Errorf("got %+v, want it timed out", x)
		}
		if x, _ := r.run("touch go; exit 6"); x.Code != 6 {
			t.Errorf("the next command: got %+v, want code 6", x)
		}
		if got := <-beside; got.err != nil || got.output != "ready\nwent on\n" {
			t.Errorf("the command beside: got %v, %q; want it to go on", got.err, got.output)
		}
	})
}

// Whoever has run something may have closed a folder to all others: the wipe goes in as each of them.
func TestWipeAsEveryUser(t *testing.T) {
	boxtest.NeedsRoot(t)
	eachKind(t, func(t *testing.T, alone bool) {
		r := setup(t, alone)
		as := func(id int) func(*container.Command) {
			return func(c *container.Command) { c.User = &container.User{UID: id, GID: id} }
		}
		for id := jobUID + 10; id < jobUID+13; id++ {
			dir := "of" + itoa(id)
			if x, out := r.run("umask 077; mkdir -p "+dir+"/in && echo x > "+dir+"/in/f && chmod 0 "+dir+"/in "+dir+" && touch $HOME/"+dir, as(id)); x.Code != 0 {
				t.Fatalf("make folders as %d: %+v, %s", id, x, out)
			}
		}
		if err := r.Stop(t.Context(), 0); err != nil {
			t.Errorf("Stop: %v", err)
		}
		r.ended(exitStopped)
		if s := r.said.String(); s != "" {
			t.Errorf("the box said %q, want nothing", s)
		}
	})
}

// A box that is a child owns what lies in its root, and touches nothing else.
func TestOwns(t *testing.T) {
	b := &box{set: wire.Settings{Root: "/srv/box"}}
	for dir, want := range map[string]bool{"/srv/box/work": true, "/srv/box": false, "/srv/boxes/work": false, "/tmp": false, "": false} {
		if got := b.owns(dir); got != want {
			t.Errorf("owns(%q): got %t, want %t", dir, got, want)
		}
	}
	if (&box{}).owns("/tmp") {
		t.Error("owns(/tmp) without a root: got true, want false")
	}
	boxtest.NeedsShield(t)
	bystander := t.TempDir()
	if err := os.WriteFile(filepath.Join(bystander, "f"), nil, 0o600); err != nil {
		t.Fatal(err)
	}
	r := setup(t, false, func(c *supervisor.Config) { c.Scratch = append(c.Scratch, bystander) })
	_ = r.Stop(t.Context(), 0)
	r.ended(exitStopped)
	if _, err := os.Stat(filepath.Join(bystander, "f")); err != nil {
		t.Errorf("a scratch folder outside of the root: %v, want it untouched", err)
	}
}

// The kernel's kill for memory ends a command with OOM, and no other one.
func TestOOM(t *testing.T) {
	boxtest.NeedsRoot(t)
	boxtest.NeedsShield(t)
	dir := "/sys/fs/cgroup/memory/slipway-box-test-" + itoa(os.Getpid())
	if err := os.Mkdir(dir, 0o755); err != nil {
		t.Skipf("needs a memory cgroup that can be written: %v", err)
	}
	t.Cleanup(func() {
		eventually.True(t, eventually.Patience, "the cgroup can be removed", func() bool { return os.Remove(dir) == nil })
	})
	if err := os.WriteFile(dir+"/memory.limit_in_bytes", []byte("100000000"), 0o644); err != nil {
		t.Skipf("needs a memory cgroup that can be written: %v", err)
	}
	self, err := os.ReadFile("/proc/self/cgroup")
	if err != nil {
		t.Fatal(err)
	}
	own := ""
	for line := range strings.Lines(string(self)) {
		if _, path, ok := strings.Cut(strings.TrimSpace(line), ":memory:"); ok {
			own = "/sys/fs/cgroup/memory" + path
		}
	}
	if own == "" {
		t.Skip("needs cgroups of version 1")
	}
	// This process moves there for the time of a fork: a child begins where its parent is.
	move := func(to string) {
		if err := os.WriteFile(to+"/cgroup.procs", []byte(itoa(os.Getpid())), 0o644); err != nil {
			t.Skipf("needs to move between cgroups: %v", err)
		}
	}
	move(dir)
	defer move(own)
	r := setup(t, false)
	move(own)
	x, _ := r.run("x=$(head -c 300000000 /dev/zero | tr '\\0' x); echo ${#x}")
	if !x.OOM || x.Success() {
		t.Errorf("a command that takes too much: got %+v, want OOM and no success", x)
	}
	if x, _ = r.run("exit 7"); x.OOM || x.Code != 7 {
		t.Errorf("the next command: got %+v, want code 7 without OOM", x)
	}
}

// Exec's context, and the box's own clock, end a command; the box goes on.
func TestCancelAndTimeout(t *testing.T) {
	eachKind(t, func(t *testing.T, alone bool) {
		r := setup(t, alone)
		ctx, cancel := context.WithCancel(t.Context())
		cmd := sh(hiding + "echo ready; sleep 600")
		cmd.Output = func(container.Stream, []byte) { cancel() }
		if x, err := r.Exec(ctx, cmd); err != nil || !x.Canceled || x.Signal != "SIGKILL" {
			t.Errorf("canceled: got %+v, %v; want it canceled by SIGKILL", x, err)
		}
		if x, _ := r.run("sleep 600", func(c *container.Command) { c.Timeout = 200 * time.Millisecond }); !x.TimedOut {
			t.Errorf("timeout: got %+v, want TimedOut", x)
		}
		if left := boxtest.Marked(r.mark); len(left) > 0 {
			t.Errorf("processes %v are left, want none", left)
		}
		if x, out := r.run("id -u; echo err >&2; exit 8"); x.Code != 8 || x.Output != int64(len(out)) || len(out) < 5 {
			t.Errorf("the next command: got %+v, %q; want code 8 and its output counted", x, out)
		}
	})
}
