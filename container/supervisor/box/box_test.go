//go:build linux

package main

import (
	"errors"
	"fmt"
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
				done := r.begin("trap '' TERM; " + hiding + "mkdir -p a/b; echo x > a/b/f; chmod 0 a/b; touch $HOME/t; for i in 1 2 3 4; do while :; do : > new$i; done & done; echo ready; wait") // it writes until it is dead, and faster than the wipe looks
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

// Whoever has run something may have closed a folder to all others: the wipe goes in as each of them, and as root, whose files
// the image may have brought.
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
		if err := os.MkdirAll(filepath.Join(r.root, "tmp/of-image/in"), 0o700); err != nil {
			t.Fatal(err)
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

// A folder of one user may hide one of another, and that one a third: it takes rounds to get at all of them. How many, a job
// decides: the chains below take five or more.
func TestWipeHiddenFolders(t *testing.T) {
	boxtest.NeedsRoot(t)
	boxtest.NeedsShield(t)
	r := setup(t, true)
	run := func(id int, script string) {
		t.Helper()
		if x, out := r.run(script, func(c *container.Command) { c.User = &container.User{UID: id, GID: id} }); x.Code != 0 {
			t.Fatalf("%s as %d: %+v, %s", script, id, x, out)
		}
	}
	const one, other = jobUID + 10, jobUID + 11
	const depth = 10
	for _, c := range []struct {
		dir  string
		a, b int
	}{{"c1", one, other}, {"c2", other, one}} {
		owner := func(level int) int { return []int{c.a, c.b}[level%2] }
		dirs := make([]string, depth)
		for i := range dirs {
			dirs[i] = c.dir + strings.Repeat("/open/closed", i)
			run(owner(i), "umask 0; mkdir -p "+dirs[i])
		}
		run(owner(depth-1), "echo x > "+dirs[depth-1]+"/f")
		for i := depth - 1; i >= 0; i-- {
			run(owner(i), "chmod 700 "+dirs[i])
		}
	}
	if err := r.Stop(t.Context(), 0); err != nil {
		t.Errorf("Stop: %v", err)
	}
	r.ended(exitStopped)
	if s := r.said.String(); s != "" {
		t.Errorf("the box said %q, want nothing", s)
	}
}

// The workspace belongs to the job's user, else git refuses to work in it; other users of the job can write there, too.
func TestWorkspaceOwner(t *testing.T) {
	boxtest.NeedsRoot(t)
	eachKind(t, func(t *testing.T, alone bool) {
		r := setup(t, alone)
		want := fmt.Sprintf("%d:%d 777\n", jobUID, jobGID)
		if _, got := r.run("stat -c '%u:%g %a' ."); got != want {
			t.Errorf("got a workspace of %q, want %q", got, want)
		}
		other := func(c *container.Command) { c.User = &container.User{UID: jobUID + 10, GID: jobUID + 10} }
		if x, out := r.run("touch f", other); x.Code != 0 {
			t.Errorf("touch as another user: %+v, %s", x, out)
		}
	})
}

// What the owner of the workspace does to the folder's own mode keeps nobody from its files: neither a push nor the wipe.
func TestWorkspaceClosed(t *testing.T) {
	boxtest.NeedsRoot(t)
	eachKind(t, func(t *testing.T, alone bool) {
		r := setup(t, alone)
		other := func(c *container.Command) { c.User = &container.User{UID: jobUID + 10, GID: jobUID + 10} }
		for _, c := range []struct {
			script string
			change func(*container.Command)
		}{{"umask 077; mkdir -p theirs/in && echo x >theirs/in/f", other}, {"echo x >f && chmod 750 .", func(*container.Command) {}}} {
			if x, out := r.run(c.script, c.change); x.Code != 0 {
				t.Fatalf("%s: %+v, %s", c.script, x, out)
			}
		}
		mode := func(want string) {
			t.Helper()
			if _, got := r.run("", func(c *container.Command) { c.Dir = "/"; c.Args[2] = "stat -c %a " + r.config().Workdir }); got != want+"\n" {
				t.Errorf("got mode %q, want %s", got, want)
			}
		}
		read := func() {
			t.Helper()
			var got strings.Builder
			if _, err := r.Files().Read(t.Context(), "f", &got, 0); err != nil || got.String() != "x\n" {
				t.Errorf("read f: got %q, %v, want x", got.String(), err)
			}
		}
		read()
		mode("750") // it hinders nothing
		if x, out := r.run("chmod 0 ."); x.Code != 0 {
			t.Fatalf("chmod: %+v, %s", x, out)
		}
		read()
		mode("777")
		if x, out := r.run("chmod 0 ."); x.Code != 0 {
			t.Fatalf("chmod: %+v, %s", x, out)
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
