package wsync_test

import (
	"os"
	"syscall"
	"testing"
	"time"

	wsync "slipway/sync"
)

// TestMapped: a change through a shared mapping is pushed, also where it leaves every time as it was: in memory,
// a page that was read before it is written raises no fault.
func TestMapped(t *testing.T) {
	for _, root := range []string{t.TempDir(), "/dev/shm"} {
		dir, err := os.MkdirTemp(root, "slipway-test-") //nolint:usetesting // one of the two is in memory
		must(t, err)
		t.Cleanup(func() { must(t, os.RemoveAll(dir)) })
		b := setup(t, wsync.Options{})
		x := &box{bench: b, dir: dir, tree: folderTree(t, dir)}
		x.base, _, err = b.syncer.Pull(t.Context(), ws, x.tree)
		must(t, err)
		x.write("mapped", "before")
		<-time.After(100 * time.Millisecond) // its times are not those of a moment ago, which nobody trusts
		x.write("other", "later")
		x.mustPush()
		writeMapped(t, x.path("mapped"))
		p := x.mustPush()
		if len(p.Changes) != 1 || p.Changes[0].Path != "mapped" {
			t.Errorf("in %s: got changes %v, want the mapped file", root, p.Changes)
		}
		b.wantSame(b.pull(), x)
	}
}

func writeMapped(t *testing.T, path string) {
	t.Helper()
	f, err := os.OpenFile(path, os.O_RDWR, 0)
	must(t, err)
	defer f.Close()
	m, err := syscall.Mmap(int(f.Fd()), 0, 6, syscall.PROT_READ|syscall.PROT_WRITE, syscall.MAP_SHARED)
	must(t, err)
	if m[0] != 'b' { // the read that spares the write its fault
		t.Errorf("mapped: got %q", m)
	}
	m[0] = 'B'
	must(t, syscall.Munmap(m))
}
