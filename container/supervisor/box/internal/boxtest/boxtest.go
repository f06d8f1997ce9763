//go:build linux

package boxtest

import (
	"bytes"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"slipway/test/eventually"
)

const roleEnv = "SLIPWAY_TEST_ROLE"

// Role runs fn, on the process's first thread, and exits with 0, if this process was started for it. Call
// it from an init function.
func Role(name string, fn func()) {
	if os.Getenv(roleEnv) != name {
		return
	}
	_ = os.Unsetenv(roleEnv) // the children have roles of their own
	fn()
	os.Exit(0)
}

// Command is the test's program in a role. Its stderr is the test's.
func Command(t testing.TB, role string, args ...string) *exec.Cmd {
	t.Helper()
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command(self, args...)
	cmd.Env = append(os.Environ(), roleEnv+"="+role)
	cmd.Stderr = os.Stderr
	cmd.WaitDelay = eventually.Patience
	return cmd
}

// Output runs the test's program in a role and returns its standard output. A failure ends t.
func Output(t testing.TB, role string, change ...func(*exec.Cmd)) string {
	t.Helper()
	cmd := Command(t, role)
	for _, c := range change {
		c(cmd)
	}
	out, err := cmd.Output()
	if err != nil {
		t.Fatalf("role %s: %v", role, err)
	}
	return string(out)
}

// NeedsRoot skips t unless the test runs as root.
func NeedsRoot(t testing.TB) {
	t.Helper()
	if os.Geteuid() != 0 {
		t.Skip("needs root")
	}
}

// NeedsShield skips t under the race detector, whose C runtime keeps Go from setting a flag on all threads.
func NeedsShield(t testing.TB) {
	t.Helper()
	if raceDetector {
		t.Skip("needs a program without C: run without the race detector")
	}
}

// Mark returns an environment variable that tells a test's processes from all others.
func Mark(t testing.TB) string {
	return "SLIPWAY_MARK=" + t.Name() + strconv.FormatInt(time.Now().UnixNano(), 36)
}

// Marked returns the live processes that carry the mark, as the kernel shows them to this process.
func Marked(mark string) (pids []int) {
	files, _ := filepath.Glob("/proc/[0-9]*/environ")
	for _, file := range files {
		if b, err := os.ReadFile(file); err == nil && bytes.Contains(b, []byte(mark)) {
			pid, _ := strconv.Atoi(strings.Split(file, "/")[2])
			pids = append(pids, pid)
		}
	}
	return pids
}

// Gone waits until no process carries the mark.
func Gone(t testing.TB, mark string) {
	t.Helper()
	eventually.True(t, eventually.Patience, "no process of the test is left", func() bool { return len(Marked(mark)) == 0 })
}

// Subreaper makes this process the parent of its orphaned descendants.
func Subreaper(t testing.TB) {
	t.Helper()
	if err := unix.Prctl(unix.PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0); err != nil {
		t.Fatal(err)
	}
}

// Shell starts a script as a child that leads a session, and ends it with all that carries mark when t ends.
func Shell(t testing.TB, mark, script string, attr ...func(*syscall.SysProcAttr)) *exec.Cmd {
	t.Helper()
	cmd := exec.Command("/bin/sh", "-c", script)
	cmd.Env = append(os.Environ(), mark)
	cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true}
	for _, change := range attr {
		change(cmd.SysProcAttr)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		eventually.True(t, eventually.Patience, "the processes of the test can be killed", func() bool {
			left := Marked(mark)
			for _, pid := range left {
				_ = unix.Kill(pid, unix.SIGKILL)
			}
			return len(left) == 0
		})
		_ = cmd.Wait() // an error says that it was killed, or that somebody else has reaped it
	})
	return cmd
}
