//go:build linux

package proctree

import (
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"
	"syscall"
	"testing"

	"golang.org/x/sys/unix"

	"slipway/container/supervisor/box/internal/boxtest"
	"slipway/test/eventually"
)

// ownUser is a user that no other run of these tests has: a signal to all of a user would reach its processes, too.
func ownUser() int { return 1<<24 + os.Getpid() }

// KillAs stops all of a user for a moment. What is outside the tree goes on, and so does what belongs to others.
func TestKillAs(t *testing.T) {
	boxtest.NeedsRoot(t)
	uid := ownUser()
	as := func(a *syscall.SysProcAttr) { a.Credential = &syscall.Credential{Uid: uint32(uid), Gid: uint32(uid)} }
	inside, outside, other := boxtest.Mark(t)+"in", boxtest.Mark(t)+"out", boxtest.Mark(t)+"other"
	tree := boxtest.Shell(t, inside, "sleep 600 & setsid sleep 600 & sleep 600; true", as)
	bystander := boxtest.Shell(t, outside, "exec sleep 600", as)
	boxtest.Shell(t, other, "exec sleep 600")
	eventually.True(t, eventually.Patience, "all have started", func() bool {
		return len(boxtest.Marked(inside)) == 4 && len(boxtest.Marked(outside)) == 1 && len(boxtest.Marked(other)) == 1
	})
	if got := len(KillAs(tree.Process.Pid, uid)); got != 3 {
		t.Errorf("KillAs returned %d processes, want 3: all below the shell", got)
	}
	eventually.True(t, eventually.Patience, "the tree is dead", func() bool { return len(boxtest.Marked(inside)) <= 1 })
	for _, mark := range []string{outside, other} {
		if len(boxtest.Marked(mark)) != 1 {
			t.Errorf("%s: killed, want it alive", mark)
		}
	}
	bystanderWas := func(options int) bool {
		var status unix.WaitStatus
		pid, err := unix.Wait4(bystander.Process.Pid, &status, options, nil)
		return err == nil && pid != 0 && (status.Stopped() || status.Continued())
	}
	eventually.True(t, eventually.Patience, "the bystander is stopped for a moment", func() bool {
		KillAs(tree.Process.Pid, uid) // one may be too quick for it to stop
		return bystanderWas(unix.WCONTINUED | unix.WNOHANG)
	})
	if err := unix.Kill(bystander.Process.Pid, unix.SIGSTOP); err != nil || !bystanderWas(unix.WUNTRACED) {
		t.Fatalf("stop the bystander: %v", err)
	}
	KillAs(tree.Process.Pid, uid)
	if !bystanderWas(unix.WCONTINUED | unix.WNOHANG) {
		t.Error("the bystander afterwards: got it stopped, want it to go on")
	}
	files, err := filepath.Glob("/proc/self/task/*/status")
	if err != nil || len(files) == 0 {
		t.Fatalf("threads of this process: %v, %v", files, err)
	}
	for _, file := range files {
		if ids, err := users(file); err == nil && strings.Contains(ids, strconv.Itoa(uid)) { // a thread may have ended
			t.Errorf("%s: real, effective, saved and file system user are %s afterwards, want none of them %d", file, ids, uid)
		}
	}
}

// The thread that signals as a user must not be killed by that user. A process may kill one whose real or saved user
// is its own, so neither of these may be the user.
func TestActAs(t *testing.T) {
	boxtest.NeedsRoot(t)
	const uid = 54322
	got := make(chan string)
	go func() {
		runtime.LockOSThread() // for good: the thread ends with this goroutine
		if errno := actAs(uid); errno != 0 {
			got <- errno.Error()
			return
		}
		ids, err := users("/proc/thread-self/status")
		if err != nil {
			ids = err.Error()
		}
		got <- ids
	}()
	if got, want := <-got, strconv.Itoa(unusedUser)+" 54322 0 54322"; got != want {
		t.Errorf("real, effective, saved and file system user: got %s, want %s", got, want)
	}
}

// users returns the real, effective, saved and file system user of a thread, whose status is in file.
func users(file string) (string, error) {
	b, err := os.ReadFile(file)
	if err != nil {
		return "", err
	}
	_, rest, _ := strings.Cut(string(b), "Uid:")
	line, _, _ := strings.Cut(rest, "\n")
	return strings.Join(strings.Fields(line), " "), nil
}

// A signal to a user reaches all of its processes, and nobody else's.
func TestSignalUser(t *testing.T) {
	boxtest.NeedsRoot(t)
	uid := ownUser()
	as := func(a *syscall.SysProcAttr) { a.Credential = &syscall.Credential{Uid: uint32(uid), Gid: uint32(uid)} }
	mark := boxtest.Mark(t)
	first, second, other := boxtest.Shell(t, mark, "exec sleep 600", as), boxtest.Shell(t, mark, "exec sleep 600", as), boxtest.Shell(t, mark, "exec sleep 600")
	for _, cmd := range []*exec.Cmd{first, second, other} {
		var status unix.WaitStatus
		if err := unix.Kill(cmd.Process.Pid, unix.SIGSTOP); err != nil {
			t.Fatal(err)
		}
		if _, err := unix.Wait4(cmd.Process.Pid, &status, unix.WUNTRACED, nil); err != nil || !status.Stopped() {
			t.Fatalf("process %d is stopped: got %v, %v", cmd.Process.Pid, status, err)
		}
	}
	signalUser(uid, unix.SIGCONT)
	for name, tt := range map[string]struct {
		cmd  *exec.Cmd
		want bool
	}{"the user's first process": {first, true}, "the user's second process": {second, true}, "root's process": {other, false}} {
		var status unix.WaitStatus
		pid, err := unix.Wait4(tt.cmd.Process.Pid, &status, unix.WCONTINUED|unix.WNOHANG, nil)
		if got := pid != 0 && status.Continued(); err != nil || got != tt.want {
			t.Errorf("%s was told to continue: got %t, %v; want %t", name, got, err, tt.want)
		}
	}
}
