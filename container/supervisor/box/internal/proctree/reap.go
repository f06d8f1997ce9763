//go:build linux

package proctree

import (
	"os"
	"syscall"
	"time"
)

// ReapForever collects ended children, and tells note of each. children announces them; a look every second finds one
// that was not announced.
func ReapForever(children <-chan os.Signal, note Note) {
	sweep := time.NewTicker(time.Second)
	defer sweep.Stop()
	for {
		select {
		case <-children:
		case <-sweep.C:
		}
		Reap(note)
	}
}

// Note is told how a child ended. It may be called from several goroutines at once.
type Note func(pid int, status syscall.WaitStatus)

// Reap collects the children that have ended, tells note of each, and reports whether no child is left.
func Reap(note Note) (none bool) {
	for {
		var status syscall.WaitStatus
		pid, err := syscall.Wait4(-1, &status, syscall.WNOHANG, nil)
		switch {
		case err == syscall.EINTR:
		case err == syscall.ECHILD:
			return true
		case err != nil || pid <= 0:
			return false
		default:
			note(pid, status)
		}
	}
}
