package supervisor_test

import (
	"errors"
	"os"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"slipway/container"
	"slipway/test/eventually"
	"slipway/test/selfexec"
)

const halfEnv = "SLIPWAY_TEST_HALF"

// halfDead becomes a process whose first thread has ended while another one lives on. The kernel's
// table calls it a zombie.
func halfDead() {
	runtime.LockOSThread() // an init function runs on the first thread
	started := make(chan struct{})
	go func() {
		runtime.LockOSThread()
		close(started)
		forever := syscall.Timespec{Sec: 600}
		_ = syscall.Nanosleep(&forever, nil)
		os.Exit(0)
	}()
	<-started
	_, _, _ = syscall.RawSyscall(syscall.SYS_EXIT, 0, 0, 0)
}

func init() {
	if os.Getenv(halfEnv) != "" {
		halfDead()
	}
}

// TestTreeKillOfHalfDead: what looks like a zombie and is none dies with its tree.
func TestTreeKillOfHalfDead(t *testing.T) {
	t.Parallel()
	r := setup(t)
	selfexec.Copy(t, filepath.Join(r.work, "half"))
	begin := time.Now()
	x, out := r.sh(halfEnv+`=1 setsid ./half & while ! grep -q ') Z' /proc/$!/stat; do sleep 0.02; done; echo $!`, func(c *container.Command) { c.Timeout = eventually.Patience })
	if x.Leftovers < 1 || x.TimedOut {
		t.Errorf("exit = %+v, want the half-dead process among the leftovers", x)
	}
	pid, err := strconv.Atoi(strings.TrimSpace(out))
	if err != nil {
		t.Fatalf("output = %q, want a pid", out)
	}
	if err := syscall.Kill(pid, 0); !errors.Is(err, syscall.ESRCH) {
		t.Errorf("process %d after its step: %v, want it gone", pid, err)
		_ = syscall.Kill(pid, syscall.SIGKILL)
	}
	x, _ = r.sh("exec ./half", func(c *container.Command) { c.Timeout, c.Env = eventually.Settled, map[string]string{halfEnv: "1"} })
	if !x.TimedOut {
		t.Errorf("exit of a half-dead leader = %+v, want it timed out", x)
	}
	if took := time.Since(begin); took > eventually.Patience {
		t.Errorf("took %v", took)
	}
}
