//go:build linux

package privs

import (
	"math"
	"os"
	"os/signal"
	"runtime"
	"sync"
	"syscall"

	"golang.org/x/sys/unix"
)

// Shield makes this process a subreaper that commands can't look into, that gains no privileges, and that
// does not die of a closed pipe. It returns the channel that announces ended children.
//
// The channel is registered before the first fork: the end of a child that nobody listens for is lost,
// which happened to the first command of 6 boxes in 300.
func Shield() (children chan os.Signal, err error) {
	children = make(chan os.Signal, 1)
	signal.Notify(children, unix.SIGCHLD)
	signal.Notify(make(chan os.Signal, 1), unix.SIGPIPE, unix.SIGHUP, unix.SIGINT, unix.SIGQUIT)
	closeOnExec()
	if err := unix.Prctl(unix.PR_SET_DUMPABLE, 0, 0, 0, 0); err != nil {
		return nil, os.NewSyscallError("hide memory", err)
	}
	if err := unix.Prctl(unix.PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0); err != nil {
		return nil, os.NewSyscallError("become subreaper", err)
	}
	if err := setNoNewPrivs(); err != nil {
		return nil, os.NewSyscallError("set no_new_privs", err)
	}
	return children, nil
}

// closeOnExec keeps the files that this process inherited away from the commands.
func closeOnExec() {
	const first = 3
	if unix.CloseRange(first, math.MaxUint32, unix.CLOSE_RANGE_CLOEXEC) == nil {
		return
	}
	for fd := first; fd < 1024; fd++ { // an old kernel does not have the call, and a seccomp filter may forbid it
		unix.CloseOnExec(fd)
	}
}

// setNoNewPrivs sets the flag on every thread: it belongs to a thread, and any thread may fork.
func setNoNewPrivs() error {
	_, _, errno := syscall.AllThreadsSyscall6(unix.SYS_PRCTL, unix.PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0, 0)
	if errno != 0 {
		return errno
	}
	return nil
}

// WarmThreads makes the runtime create n threads now and keep them. When a fork bomb has reached the pids
// limit, the runtime can't create one, and would abort.
func WarmThreads(n int) {
	var ready, done sync.WaitGroup
	ready.Add(n)
	done.Add(n)
	release := make(chan struct{})
	for range n {
		go func() {
			runtime.LockOSThread()
			ready.Done()
			<-release
			runtime.UnlockOSThread()
			done.Done()
		}()
	}
	ready.Wait()
	close(release)
	done.Wait()
}
