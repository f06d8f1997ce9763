//go:build linux

package proctree

import (
	"os"
	"syscall"
	"time"
)

// ReapForever collects ended children. children announces them; a look every second finds one that was
// not announced.
func ReapForever(children <-chan os.Signal) {
	sweep := time.NewTicker(time.Second)
	defer sweep.Stop()
	for {
		select {
		case <-children:
		case <-sweep.C:
		}
		Reap()
	}
}

// Reap collects the children that have ended, and reports whether no child is left.
func Reap() (none bool) {
	for {
		var status syscall.WaitStatus
		pid, err := syscall.Wait4(-1, &status, syscall.WNOHANG, nil)
		switch {
		case err == syscall.EINTR:
		case err == syscall.ECHILD:
			return true
		case err != nil || pid <= 0:
			return false
		}
	}
}
