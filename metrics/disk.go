//go:build linux || darwin

package metrics

import (
	"context"
	"fmt"
	"syscall"
)

// DiskCheck fails when a user without privileges can write fewer than free bytes to
// the file system of dir.
func DiskCheck(dir string, free int64) Check {
	return Check{Name: "disk", Run: func(context.Context) error {
		var st syscall.Statfs_t
		if err := syscall.Statfs(dir, &st); err != nil {
			return fmt.Errorf("look at the disk of %s: %w", dir, err)
		}
		have := int64(st.Bavail) * int64(st.Bsize)
		if have < free {
			return fmt.Errorf("%s has %d MiB free, less than the %d MiB that a worker needs: make room, or lower the limit", dir, have>>20, free>>20)
		}
		return nil
	}}
}
