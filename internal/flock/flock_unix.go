//go:build unix

package flock

import (
	"errors"
	"os"
	"syscall"
)

// Try locks f, or returns ErrLocked at once.
func Try(f *os.File) error {
	err := call(f, syscall.LOCK_EX|syscall.LOCK_NB)
	if errors.Is(err, syscall.EWOULDBLOCK) {
		return ErrLocked
	}
	return err
}

// Wait locks f, and waits for that as long as it takes.
func Wait(f *os.File) error { return call(f, syscall.LOCK_EX) }

// call repeats what a signal interrupted: the Go runtime sends itself some.
func call(f *os.File, how int) error {
	for {
		if err := syscall.Flock(int(f.Fd()), how); !errors.Is(err, syscall.EINTR) {
			return err
		}
	}
}
