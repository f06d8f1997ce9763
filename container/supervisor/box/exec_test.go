//go:build linux

package main

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"slipway/container"
	"slipway/container/supervisor/box/internal/boxtest"
	"slipway/test/eventually"
)

// A dead step process means that the exit is not known. Its tree, which is then the box's, is killed; others go on. Where the
// commands have the box's own user, each of them may have killed it, and is taken to have.
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
		switch got := <-done; {
		case os.Geteuid() != 0:
			if got.err != nil || !got.Unwatched || got.Signal != "SIGKILL" {
				t.Errorf("got %+v, %v; want it unwatched, by SIGKILL", got.Exit, got.err)
			}
		case !errors.Is(got.err, container.ErrBoxLost):
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
