//go:build linux

package workspace

import (
	"testing"

	"golang.org/x/sys/unix"

	"slipway/container/supervisor/internal/wire"
)

func TestStatusOf(t *testing.T) {
	for err, want := range map[error]wire.Code{
		nil: wire.CodeOK, unix.ENOENT: wire.CodeNotFound, unix.ENOSPC: wire.CodeNoSpace, unix.EDQUOT: wire.CodeNoSpace,
		unix.EACCES: wire.CodePermission, unix.ELOOP: wire.CodePath, unix.EIO: wire.CodeOther, unix.EISDIR: wire.CodeExists,
	} {
		if got := statusOf("p", err); got.Code != want {
			t.Errorf("statusOf(%v) = %d, want %d", err, got.Code, want)
		}
	}
}

// Files in memory have no change time that means anything; others have theirs.
func TestChangeTime(t *testing.T) {
	for root, memory := range map[string]bool{"/dev/shm": true, "/proc/self": false} {
		fd, err := unix.Open(root, unix.O_PATH|unix.O_DIRECTORY, 0)
		if err != nil {
			t.Fatal(err)
		}
		defer unix.Close(fd)
		info, err := newTree(fd).statAt(fd, ".", ".")
		if err != nil || (info.ChangeTime == 0) != memory {
			t.Errorf("%s: got change time %d, %v; unknown: want %t", root, info.ChangeTime, err, memory)
		}
	}
}
