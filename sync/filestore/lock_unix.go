//go:build linux || darwin

package filestore

import (
	"errors"
	"os"
	"syscall"
)

// lock makes f this Store's alone until it is closed, also by the end of the process.
func lock(f *os.File) error {
	err := syscall.Flock(int(f.Fd()), syscall.LOCK_EX|syscall.LOCK_NB)
	if errors.Is(err, syscall.EWOULDBLOCK) {
		return ErrInUse
	}
	return err
}
