//go:build linux

package workspace

import (
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"slipway/container/supervisor/box/internal/privs"
)

func TestRemover(t *testing.T) {
	root := t.TempDir()
	fd, err := unix.Open(root, unix.O_RDONLY|unix.O_DIRECTORY, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer unix.Close(fd)
	outside := filepath.Join(t.TempDir(), "outside")
	if err := os.WriteFile(outside, nil, 0o644); err != nil {
		t.Fatal(err)
	}
	for i := range 20 {
		dir := filepath.Join(root, "top", "d"+strconv.Itoa(i), strings.Repeat("e/", i)+"f")
		if err := os.MkdirAll(dir, 0o755); err != nil {
			t.Fatal(err)
		}
		for _, name := range []string{"a", "b", ".slipway-removed-1"} {
			if err := os.WriteFile(filepath.Join(dir, name), nil, 0o444); err != nil {
				t.Fatal(err)
			}
		}
		if err := os.Symlink(outside, filepath.Join(dir, "l")); err != nil {
			t.Fatal(err)
		}
		if err := os.Chmod(dir, 0o500); err != nil {
			t.Fatal(err)
		}
	}
	r := &remover{until: time.Now().Add(time.Minute)}
	if err := r.remove(fd, "top"); err != nil {
		t.Errorf("remove: %v", err)
	}
	if err := r.remove(fd, "top"); err != nil {
		t.Errorf("remove again: %v", err)
	}
	if list, _ := os.ReadDir(root); len(list) != 0 {
		t.Errorf("left: %v", list)
	}
	if _, err := os.Stat(outside); err != nil {
		t.Errorf("a link was followed: %v", err)
	}
	late := &remover{until: time.Now().Add(-time.Second)}
	if err := os.MkdirAll(filepath.Join(root, "x/y"), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := late.remove(fd, "x"); err == nil {
		t.Error("no error although the time was over")
	}
}

// What a remover may hold open does not grow with the tree: a job can make one that is too deep for rm.
func TestRemoveDeepWithFewFiles(t *testing.T) {
	r := setup(t)
	_ = unix.Close(r.deep(3000))
	var limit unix.Rlimit
	if err := unix.Getrlimit(unix.RLIMIT_NOFILE, &limit); err != nil {
		t.Fatal(err)
	}
	open, err := os.ReadDir("/proc/self/fd")
	if err != nil {
		t.Fatal(err)
	}
	few := limit
	few.Cur = uint64(len(open) + 12)
	if err := unix.Setrlimit(unix.RLIMIT_NOFILE, &few); err != nil {
		t.Fatal(err)
	}
	err = Empty(r.dir, time.Now().Add(time.Minute))
	if e := unix.Setrlimit(unix.RLIMIT_NOFILE, &limit); e != nil {
		t.Fatal(e)
	}
	if err != nil {
		t.Errorf("Empty: got %v, want no error", err)
	}
	if list, _ := os.ReadDir(r.dir); len(list) != 0 {
		t.Errorf("left: %v", list)
	}
}

// A folder of more folders than are remembered at once is emptied by several looks.
func TestRemoveWide(t *testing.T) {
	dir, err := os.MkdirTemp("/dev/shm", "slipway-test-") //nolint:usetesting // in memory: a disk takes half a minute
	if err != nil {
		t.Skipf("needs a file system in memory: %v", err)
	}
	t.Cleanup(func() { _ = os.RemoveAll(dir) })
	top := filepath.Join(dir, "top")
	if err := os.Mkdir(top, 0o755); err != nil {
		t.Fatal(err)
	}
	for i := range maxPending + 100 {
		name := filepath.Join(top, "a", strconv.Itoa(i))
		if err := os.MkdirAll(filepath.Join(name, "in"), 0o755); err != nil {
			t.Fatal(err)
		}
	}
	if err := Remove(top, time.Now().Add(time.Minute)); err != nil {
		t.Errorf("Remove: got %v, want no error", err)
	}
	if _, err := os.Lstat(top); !os.IsNotExist(err) {
		t.Errorf("the folder after Remove: %v, want it gone", err)
	}
	if err := Remove(top, time.Now().Add(time.Minute)); err != nil {
		t.Errorf("Remove of nothing: got %v, want no error", err)
	}
}

// A user's own folders are removed also if their modes forbid it.
func TestRemoveOfClosedFolders(t *testing.T) {
	r := setup(t)
	r.makeTree("top/", "top/f", "top/closed/", "top/closed/f", "top/closed/in/", "top/closed/in/f", "top/none/", "top/none/f")
	for _, closed := range []struct {
		name string
		mode os.FileMode
	}{{"top/closed/in", 0o500}, {"top/closed", 0o555}, {"top/none", 0}, {"top", 0o555}} {
		r.do(func(dir string) error { return os.Chmod(filepath.Join(dir, closed.name), closed.mode) })
	}
	err := privs.AsUser(r.server.uid, r.server.gid, func() error { return Empty(r.dir, time.Now().Add(time.Minute)) })
	if err != nil {
		t.Errorf("Empty: got %v, want no error", err)
	}
	if list, _ := os.ReadDir(r.dir); len(list) != 0 {
		t.Errorf("left: %v", list)
	}
}

// An entry that can't be removed does not keep the others, and is the error.
func TestEmptyGoesOn(t *testing.T) {
	dir := t.TempDir()
	for _, name := range []string{"a", "b/c", "d"} {
		if err := os.MkdirAll(filepath.Join(dir, name), 0o755); err != nil {
			t.Fatal(err)
		}
	}
	busy := filepath.Join(dir, "b")
	if err := unix.Mount("tmpfs", busy, "tmpfs", 0, "size=64k"); err != nil {
		t.Skipf("needs to mount a file system: %v", err)
	}
	t.Cleanup(func() { _ = unix.Unmount(busy, unix.MNT_DETACH) })
	if err := Empty(dir, time.Now().Add(time.Minute)); err != unix.EBUSY {
		t.Errorf("Empty with a mount in it: got %v, want %v", err, unix.EBUSY)
	}
	if list, _ := os.ReadDir(dir); len(list) != 1 || list[0].Name() != "b" {
		t.Errorf("left: got %v, want only the mount", list)
	}
	if err := Empty(filepath.Join(dir, "no"), time.Now()); !os.IsNotExist(err) {
		t.Errorf("Empty of nothing: got %v, want not found", err)
	}
}

// While a process goes on making entries the removal still ends by its time.
func TestEmptyEndsByItsTime(t *testing.T) {
	dir := t.TempDir()
	stop, stopped := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(stopped)
		for i := 0; ; i++ {
			select {
			case <-stop:
				return
			default:
				_ = os.MkdirAll(filepath.Join(dir, strconv.Itoa(i), "x"), 0o755)
			}
		}
	}()
	within(t, "Empty beside a process that makes entries", func() {
		_ = Empty(dir, time.Now().Add(300*time.Millisecond)) // how much it got is chance
	})
	close(stop)
	<-stopped
}

func FuzzParseDirents(f *testing.F) {
	f.Add([]byte("01234567abcdefgh\x18\x00\x04name\x00"))
	f.Add([]byte{})
	f.Fuzz(func(t *testing.T, b []byte) {
		for _, e := range parseDirents(b, nil) {
			if len(e.name) > len(b) || e.name == "." || e.name == ".." || strings.IndexByte(e.name, 0) >= 0 {
				t.Errorf("got the name %q of %q", e.name, b)
			}
		}
	})
}
