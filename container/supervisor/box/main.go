//go:build linux

package main

import (
	"math"
	"os"
	"os/signal"
	"runtime"
	"sync"

	"golang.org/x/sys/unix"
)

// How the box starts its step processes. Nobody else uses arguments.
const (
	argStep      = "step"
	argStepAlone = "step-alone" // the box is process 1: it may signal whatever there is
)

func main() {
	runtime.GOMAXPROCS(2)
	if len(os.Args) == 2 && os.Args[1] == argStep {
		os.Exit(runStep(false))
	}
	if len(os.Args) == 2 && os.Args[1] == argStepAlone {
		os.Exit(runStep(true))
	}
	os.Exit(runBox())
}

// shield makes this process a subreaper that steps can't look into, can't
// gain privileges from, and that doesn't die of a closed pipe. It returns what tells of ended children:
// registered before the first fork, since the end of a child that nobody listens for is lost.
func shield() (children chan os.Signal, err error) {
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

// closeOnExec keeps what this process inherited from the commands.
func closeOnExec() {
	const first = 3
	if unix.CloseRange(first, math.MaxUint32, unix.CLOSE_RANGE_CLOEXEC) == nil {
		return
	}
	for fd := first; fd < 1024; fd++ { // an old kernel, or its filter
		unix.CloseOnExec(fd)
	}
}

// warmThreads makes the runtime create n threads now and keep them. At the
// pids limit of a fork bomb it could not create one later, and would abort.
func warmThreads(n int) {
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

func complain(text string, err error) {
	if err != nil {
		text += ": " + err.Error()
	}
	_, _ = os.Stderr.WriteString("slipway box: " + text + "\n")
}
