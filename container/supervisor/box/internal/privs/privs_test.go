//go:build linux

package privs

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"

	"golang.org/x/sys/unix"

	"slipway/container/supervisor/box/internal/boxtest"
)

const testUID, testGID = 54321, 54322

func TestAsUser(t *testing.T) {
	boxtest.NeedsRoot(t)
	dir := t.TempDir()
	for d := dir; d != os.TempDir() && d != "/"; d = filepath.Dir(d) {
		if err := os.Chmod(d, 0o755); err != nil {
			t.Fatal(err)
		}
	}
	open, closed := filepath.Join(dir, "open"), filepath.Join(dir, "closed")
	if err := errors.Join(os.Mkdir(open, 0o777), os.Chmod(open, 0o777), os.Mkdir(closed, 0o700)); err != nil {
		t.Fatal(err)
	}
	made := filepath.Join(open, "made")
	err := AsUser(testUID, testGID, func() error {
		if err := unix.Mkdir(filepath.Join(closed, "x"), 0o755); err != unix.EACCES {
			t.Errorf("a folder of root is open to the user: got %v, want EACCES", err)
		}
		return unix.Mkdir(made, 0o755)
	})
	if err != nil {
		t.Fatalf("AsUser: %v", err)
	}
	var st unix.Stat_t
	if err := unix.Stat(made, &st); err != nil || st.Uid != testUID || st.Gid != testGID {
		t.Errorf("owner of what the user made: got %d:%d, %v, want %d:%d", st.Uid, st.Gid, err, testUID, testGID)
	}
	boom := errors.New("boom")
	if err := AsUser(testUID, testGID, func() error { return boom }); err != boom {
		t.Errorf("AsUser: got %v, want the function's error", err)
	}
	if err := unix.Mkdir(filepath.Join(closed, "y"), 0o755); err != nil {
		t.Errorf("afterwards this thread has not got its rights back: %v", err)
	}
}

// The rights belong to a thread: others keep theirs, also while many change.
func TestAsUserAtOnce(t *testing.T) {
	boxtest.NeedsRoot(t)
	closed := t.TempDir()
	if err := os.Chmod(closed, 0o700); err != nil {
		t.Fatal(err)
	}
	var all sync.WaitGroup
	for i := range 32 {
		all.Go(func() {
			for range 50 {
				uid := testUID + i
				if i%2 == 0 {
					if _, err := os.ReadDir(closed); err != nil {
						t.Errorf("as root: %v", err)
					}
					continue
				}
				_ = AsUser(uid, uid, func() error {
					if u, _ := unix.SetfsuidRetUid(-1); u != uid {
						t.Errorf("got the rights of %d, want %d", u, uid)
					}
					beside := make(chan int) // while this goroutine waits, others may take any thread but its own
					go func() { u, _ := unix.SetfsuidRetUid(-1); beside <- u }()
					if u := <-beside; u != 0 {
						t.Errorf("a goroutine beside it got the rights of %d, want root's", u)
					}
					return nil
				})
			}
		})
	}
	all.Wait()
}

func init() {
	boxtest.Role("shielded", func() {
		children, err := Shield()
		if err != nil {
			panic(err)
		}
		fmt.Println("dumpable", dumpable())
		fmt.Println("inherited", closesOnExec(3))
		for _, sig := range []unix.Signal{unix.SIGHUP, unix.SIGINT, unix.SIGQUIT} {
			_ = unix.Kill(os.Getpid(), sig)
		}
		// The orphan of a child becomes this process's child, and its end is announced.
		cmd := exec.Command("/bin/sh", "-c", "sh -c 'sleep 0.3; exit 5' >/dev/null & echo $!")
		out, err := cmd.Output()
		if err != nil {
			panic(err)
		}
		var status unix.WaitStatus
		var pid int
		_, _ = fmt.Sscan(string(out), &pid)
		_, err = unix.Wait4(pid, &status, 0, nil)
		fmt.Println("orphan", err, status.ExitStatus())
		<-children
		fmt.Println("no new privileges", everyThread("NoNewPrivs:\t1"))
		var broken [2]int
		if err := errors.Join(unix.Pipe(broken[:]), unix.Close(broken[0]), unix.Dup3(broken[1], 1, 0)); err != nil {
			panic(err)
		}
		_, err = os.Stdout.WriteString("x") // ends a Go program that does not ask for SIGPIPE
		if !errors.Is(err, unix.EPIPE) {
			panic(err)
		}
	})
	boxtest.Role("warm", func() {
		WarmThreads(12)
		before := threads()
		var ready, all sync.WaitGroup
		ready.Add(12)
		release := make(chan struct{})
		for range 12 { // blocked in the kernel, each on a thread
			all.Go(func() {
				var fds [2]int
				_ = unix.Pipe(fds[:])
				go func() { <-release; _ = unix.Close(fds[1]) }()
				ready.Done()
				_, _ = unix.Read(fds[0], make([]byte, 1))
			})
		}
		ready.Wait()
		close(release)
		all.Wait()
		fmt.Println(before >= 12)
	})
}

func dumpable() int {
	n, _, _ := syscall.RawSyscall(unix.SYS_PRCTL, unix.PR_GET_DUMPABLE, 0, 0)
	return int(n)
}

func closesOnExec(fd int) bool {
	flags, err := unix.FcntlInt(uintptr(fd), unix.F_GETFD, 0)
	return err == nil && flags&unix.FD_CLOEXEC != 0
}

// everyThread reports whether the status of every thread of this process has the line.
func everyThread(line string) bool {
	files, _ := filepath.Glob("/proc/self/task/*/status")
	for _, f := range files {
		if b, err := os.ReadFile(f); err == nil && !bytes.Contains(b, []byte(line)) {
			return false
		}
	}
	return len(files) > 1
}

func threads() int {
	files, _ := filepath.Glob("/proc/self/task/*")
	return len(files)
}

// The supervisor can't be looked into, gives no file to commands, survives the signals of a terminal and of a closed
// pipe, adopts orphans, and lets no program gain privileges, whichever thread starts it.
func TestShield(t *testing.T) {
	boxtest.NeedsShield(t)
	inherited, err := os.Open(os.DevNull)
	if err != nil {
		t.Fatal(err)
	}
	defer inherited.Close()
	got := boxtest.Output(t, "shielded", func(c *exec.Cmd) { c.ExtraFiles = []*os.File{inherited} })
	want := "dumpable 0\ninherited true\norphan <nil> 5\nno new privileges true\n"
	if got != want {
		t.Errorf("got\n%swant\n%s", got, want)
	}
}

func TestWarmThreads(t *testing.T) {
	if got := strings.TrimSpace(boxtest.Output(t, "warm")); got != "true" {
		t.Errorf("at least 12 threads after WarmThreads(12): got %s, want true", got)
	}
}
