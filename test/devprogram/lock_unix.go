//go:build unix

package devprogram

import (
	"os"
	"syscall"
)

// lock waits until no other process holds the lock on path.
func lock(path string) (unlock func() error, err error) {
	f, err := os.OpenFile(path, os.O_CREATE|os.O_RDWR, 0o600)
	if err != nil {
		return nil, err
	}
	for {
		err = syscall.Flock(int(f.Fd()), syscall.LOCK_EX)
		if err == nil {
			return f.Close, nil
		}
		if err != syscall.EINTR { //nolint:errorlint // comes bare
			f.Close()
			return nil, err
		}
	}
}
