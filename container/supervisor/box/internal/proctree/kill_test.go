//go:build linux

package proctree

import (
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strconv"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"slipway/container/supervisor/box/internal/boxtest"
	"slipway/test/eventually"
	"slipway/test/selfexec"
)

// hidden starts processes that have left the session, the parent, or the signals of their shell.
const hidden = `setsid sleep 600 & nohup sleep 600 >/dev/null 2>&1 & (setsid sh -c 'sleep 600 & sleep 600' &) ; sleep 600`

const hiddenCount = 6 // with the shell itself

func below(t *testing.T, root int) []Process {
	t.Helper()
	list, err := Descendants(root)
	if err != nil {
		t.Fatalf("Descendants(%d): %v", root, err)
	}
	return list
}

func pids(list []Process) (pids []int) {
	for _, p := range list {
		pids = append(pids, p.PID)
	}
	return pids
}

func TestDescendantsFindsWhatHides(t *testing.T) {
	boxtest.Subreaper(t)
	mark := boxtest.Mark(t)
	boxtest.Shell(t, mark, hidden)
	eventually.True(t, eventually.Patience, "all have started", func() bool { return len(boxtest.Marked(mark)) >= hiddenCount })
	got := pids(below(t, os.Getpid()))
	for _, pid := range boxtest.Marked(mark) {
		if !slices.Contains(got, pid) {
			t.Errorf("got %v, want process %d among them", got, pid)
		}
	}
}

// A dead process that nobody has reaped is no descendant; its living children are.
func TestDescendantsWithoutZombies(t *testing.T) {
	mark := boxtest.Mark(t)
	cmd := boxtest.Shell(t, mark, "exit 0")
	buf := make([]byte, 1024)
	eventually.True(t, eventually.Patience, "the shell is a zombie", func() bool {
		p, ok := readProcess(cmd.Process.Pid, buf)
		return ok && p.zombie()
	})
	if got := pids(below(t, os.Getpid())); slices.Contains(got, cmd.Process.Pid) {
		t.Errorf("got %v, want the zombie %d not among them", got, cmd.Process.Pid)
	}
}

func init() {
	boxtest.Role("half dead", func() {
		started := make(chan struct{})
		go func() {
			runtime.LockOSThread()
			close(started)
			forever := syscall.Timespec{Sec: 600}
			_ = syscall.Nanosleep(&forever, nil)
		}()
		<-started
		_, _, _ = syscall.RawSyscall(syscall.SYS_EXIT, 0, 0, 0) // ends this thread, the first one, alone
	})
}

// A process whose first thread has ended looks like a zombie and never looks stopped. It is found and killed.
func TestKillHalfDead(t *testing.T) {
	program := filepath.Join(t.TempDir(), "half")
	selfexec.Copy(t, program)
	mark := boxtest.Mark(t)
	cmd := boxtest.Shell(t, mark, "SLIPWAY_TEST_ROLE='half dead' exec "+program)
	buf := make([]byte, 1024)
	eventually.True(t, eventually.Patience, "its first thread has ended", func() bool {
		p, ok := readProcess(cmd.Process.Pid, buf)
		return ok && p.ended()
	})
	if got := pids(below(t, os.Getpid())); !slices.Contains(got, cmd.Process.Pid) {
		t.Fatalf("got %v, want the half-dead process %d among them", got, cmd.Process.Pid)
	}
	// It does not wait until that looks stopped, which it never does, but kills it.
	if got := pids(Freeze(os.Getpid())); slices.Contains(got, cmd.Process.Pid) {
		t.Errorf("Freeze: the last look saw %v, want the half-dead process %d dead by then", got, cmd.Process.Pid)
	}
	boxtest.Gone(t, mark)
}

func TestKillHiddenTree(t *testing.T) {
	boxtest.Subreaper(t)
	mark := boxtest.Mark(t)
	boxtest.Shell(t, mark, hidden)
	eventually.True(t, eventually.Patience, "all have started", func() bool { return len(boxtest.Marked(mark)) >= hiddenCount })
	if killed := Kill(os.Getpid()); len(killed) < hiddenCount {
		t.Errorf("Kill returned %d processes, want at least %d", len(killed), hiddenCount)
	}
	boxtest.Gone(t, mark)
}

// Freeze returns only when nothing below root runs. What a later look finds in addition is stopped, too. It stops groups, since a chain of processes that fork
// and exit at once is always one ahead of a killer that goes from process to process.
func TestFreezeStopsChain(t *testing.T) {
	boxtest.Subreaper(t)
	mark := boxtest.Mark(t)
	boxtest.Shell(t, mark, "f() { f & }; f & f & f & f & sleep 600")
	defer reaping()()
	eventually.True(t, eventually.Patience, "the chain runs", func() bool { return len(below(t, os.Getpid())) >= 2 })
	begin := time.Now()
	frozen := Freeze(os.Getpid())
	took := time.Since(begin)
	again := below(t, os.Getpid())
	for _, p := range again {
		// One that waits in the kernel, such as for a stopped child of its vfork, stops when it returns from there. Until then it forks nothing.
		if !p.stopped() && p.state != 'D' {
			t.Errorf("after Freeze: process %+v runs, want all stopped", p)
		}
	}
	t.Logf("%d processes frozen in %v", len(frozen), took)
	eventually.True(t, eventually.Patience, "all are dead", func() bool {
		Kill(os.Getpid()) // one look may miss a stopped child whose parent is just being reaped
		return len(boxtest.Marked(mark)) == 0
	})
}

// reaping collects what ends below this process, as a subreaper must, or the table fills with zombies.
func reaping() (stop func()) {
	reaped, end := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(reaped)
		for {
			select {
			case <-end:
				return
			case <-time.After(time.Millisecond):
				Reap(func(int, syscall.WaitStatus) {})
			}
		}
	}()
	return func() { close(end); <-reaped }
}

// A signal that goes from process to process reaches parents whose children it has not seen: those go on.
func TestTerminateOutrunsForks(t *testing.T) {
	boxtest.Subreaper(t)
	defer reaping()()
	for range 20 {
		mark := boxtest.Mark(t)
		boxtest.Shell(t, mark, "(while :; do sleep 600 & sleep 0.002; done) & (while :; do setsid sleep 600 & sleep 0.002; done) & sleep 600")
		eventually.True(t, eventually.Patience, "it forks", func() bool { return len(below(t, os.Getpid())) >= 20 })
		Terminate(os.Getpid())
		eventually.True(t, eventually.Patience, "all have ended", func() bool { return len(boxtest.Marked(mark)) == 0 })
	}
}

// What is stopped, what leads no group and what has lost its first thread hear of it, too; what a trap starts does not.
func TestTerminateReachesAll(t *testing.T) {
	program := filepath.Join(t.TempDir(), "half")
	selfexec.Copy(t, program)
	boxtest.Subreaper(t)
	defer reaping()()
	for name, script := range map[string]string{
		"stopped":   "sleep 600 & kill -STOP $!; echo ready; kill -STOP $$; sleep 600",
		"half dead": "SLIPWAY_TEST_ROLE='half dead' " + program + " & echo ready; sleep 600",
		"hidden":    "echo ready; " + hidden,
	} {
		mark := boxtest.Mark(t)
		boxtest.Shell(t, mark, script)
		eventually.True(t, eventually.Patience, name+" runs", func() bool { return len(boxtest.Marked(mark)) >= 2 })
		Terminate(os.Getpid())
		eventually.True(t, eventually.Patience, name+" has ended", func() bool { return len(boxtest.Marked(mark)) == 0 })
	}
	dir := t.TempDir()
	mark := boxtest.Mark(t)
	boxtest.Shell(t, mark, "cd "+dir+"; trap 'sleep 0.2; touch cleaned; exit' TERM; touch up; while :; do sleep 0.05; done")
	there := func(name string) func() bool {
		return func() bool { _, err := os.Stat(filepath.Join(dir, name)); return err == nil }
	}
	eventually.True(t, eventually.Patience, "the trap is set", there("up"))
	Terminate(os.Getpid())
	eventually.True(t, eventually.Patience, "the trap has run to its end", there("cleaned"))
	boxtest.Gone(t, mark)
}

// A group is stopped as a whole, in one step of the kernel, so that no member forks while another one is stopped.
func TestFreezeStopsGroups(t *testing.T) {
	mark := boxtest.Mark(t)
	// Two subshells of one group, each with a child. The first one is the root; the second is not below it.
	shell := boxtest.Shell(t, mark, "(sleep 600; true) & (sleep 600; true) & sleep 600; true")
	var subshells []Process
	eventually.True(t, eventually.Patience, "all have started", func() bool {
		subshells = nil
		for _, p := range below(t, shell.Process.Pid) {
			if p.Parent == shell.Process.Pid && len(below(t, p.PID)) == 1 {
				subshells = append(subshells, p)
			}
		}
		return len(subshells) == 2
	})
	if frozen := Freeze(subshells[0].PID); len(frozen) != 1 || !frozen[0].stopped() {
		t.Errorf("got %+v, want the one process below the root, stopped", frozen)
	}
	// Freeze waits for what is below the root alone; the others take the same signal when the kernel next runs them.
	eventually.True(t, eventually.Patience, "a member of the group beside the root is stopped too", func() bool {
		other := below(t, subshells[1].PID)
		return len(other) == 1 && other[0].stopped()
	})
}

// A signal meant for a process does not reach a later one with the same pid.
func TestSendSparesSuccessor(t *testing.T) {
	mark := boxtest.Mark(t)
	cmd := boxtest.Shell(t, mark, "exec sleep 600")
	p, ok := readProcess(cmd.Process.Pid, make([]byte, 1024))
	if !ok {
		t.Fatal("the child is not in the table")
	}
	earlier := p
	earlier.Start--
	earlier.Send(unix.SIGKILL)
	if err := unix.Kill(p.PID, 0); err != nil || len(boxtest.Marked(mark)) != 1 {
		t.Errorf("after a signal to an earlier process of its pid: %v, %d left; want it alive", err, len(boxtest.Marked(mark)))
	}
	p.Send(unix.SIGKILL)
	if err := cmd.Wait(); err == nil {
		t.Error("Send(SIGKILL): the process ended well, want it killed")
	}
}

func TestReap(t *testing.T) {
	out := boxtest.Output(t, "reaper")
	if want := "false true collected\n"; out != want {
		t.Errorf("got %q, want %q", out, want)
	}
}

func init() {
	boxtest.Role("reaper", func() {
		fork := func(script string) int {
			pid, err := syscall.ForkExec("/bin/sh", []string{"sh", "-c", script}, nil)
			if err != nil {
				panic(err)
			}
			return pid
		}
		pid := fork("sleep 600")
		first := Reap(func(int, syscall.WaitStatus) {})
		_ = unix.Kill(pid, unix.SIGKILL)
		for !Reap(func(int, syscall.WaitStatus) {}) {
			<-time.After(time.Millisecond)
		}
		pid = fork("exit 3")
		go ReapForever(nil, func(int, syscall.WaitStatus) {}) // nothing announces the end of the child
		for deadline := time.Now().Add(eventually.Patience); ; <-time.After(10 * time.Millisecond) {
			if _, ok := readProcess(pid, make([]byte, 1024)); !ok {
				break
			}
			if time.Now().After(deadline) {
				_, _ = os.Stdout.WriteString("an ended child stays ")
				break
			}
		}
		_, _ = os.Stdout.WriteString(strconv.FormatBool(first) + " " + strconv.FormatBool(Reap(func(int, syscall.WaitStatus) {})) + " collected\n")
	})
}
