//go:build linux

package workspace

import (
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"slipway/container/supervisor/box/internal/boxtest"
	"slipway/container/supervisor/internal/wire"
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
	err = emptied(r.dir, time.Now().Add(time.Minute))
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

// A user's own folders are removed also if their modes forbid it, at any depth, the first one among them.
func TestRemoveOfClosedFolders(t *testing.T) {
	r := setup(t)
	for _, mode := range []os.FileMode{0o555, 0o500, 0o300, 0} {
		for _, tt := range []struct {
			name   string
			closed []string // inner ones first
		}{
			{"the first", []string{"ro"}},
			{"a lower one", []string{"ro/in"}},
			{"one that holds a folder only", []string{"ro/in/deep"}},
			{"one that holds a file only", []string{"ro/one"}},
			{"all", []string{"ro/in/deep/er", "ro/in/deep", "ro/in", "ro"}},
			{"the workspace, too", []string{"ro/in", "ro", "."}},
		} {
			for _, how := range []string{"delete", "wipe"} {
				if how == "delete" && slices.Contains(tt.closed, ".") {
					continue // what a user may not write to by rm neither
				}
				r.makeTree("ro/", "ro/f", "ro/one/", "ro/one/f", "ro/in/", "ro/in/f", "ro/in/deep/", "ro/in/deep/er/", "ro/in/deep/er/f")
				for _, name := range tt.closed {
					r.do(func(dir string) error { return os.Chmod(filepath.Join(dir, name), mode) })
				}
				if how == "delete" {
					if _, st, _ := r.call(wire.KindDelete, path("ro")); st.Code != wire.CodeOK {
						t.Errorf("%s of %s closed by %o: got %+v, want it done", how, tt.name, mode, st)
					}
				} else if err := r.asUser(func() error { return emptied(r.dir, time.Now().Add(time.Minute)) }); err != nil {
					t.Errorf("%s of %s closed by %o: got %v, want no error", how, tt.name, mode, err)
				}
				r.do(func(dir string) error { return os.Chmod(dir, 0o755) })
				if list, err := os.ReadDir(r.dir); len(list) != 0 || err != nil {
					t.Fatalf("%s of %s closed by %o: left %v, %v; want nothing", how, tt.name, mode, list, err)
				}
			}
		}
	}
}

// The mode of a folder that its owner has closed to himself keeps what it gives to others.
func TestOpenUp(t *testing.T) {
	dir := t.TempDir()
	fd, err := unix.Open(dir, unix.O_RDONLY|unix.O_DIRECTORY|unix.O_CLOEXEC, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer unix.Close(fd)
	for _, tt := range []struct {
		before, after uint32
		changed       bool
	}{{0o555, 0o755, true}, {0o1077, 0o1777, true}, {0o777, 0o777, false}, {0o700, 0o700, false}} {
		if err := unix.Fchmod(fd, tt.before); err != nil {
			t.Fatal(err)
		}
		changed := openUp(fd)
		var st unix.Stat_t
		if err := unix.Fstat(fd, &st); err != nil || st.Mode&0o7777 != tt.after || changed != tt.changed {
			t.Errorf("%o: got %o, %t, %v; want %o, %t", tt.before, st.Mode&0o7777, changed, err, tt.after, tt.changed)
		}
	}
}

// What can't be removed has the reason, and nothing says that it is not there.
func TestDeleteDenied(t *testing.T) {
	r := setup(t)
	r.makeTree("ro/", "ro/f", "ro/empty/", "ro/full/", "ro/full/f")
	r.do(func(dir string) error { return os.Symlink("f", filepath.Join(dir, "ro/link")) })
	r.do(func(dir string) error { return os.Chmod(filepath.Join(dir, "ro"), 0o555) })
	for _, name := range []string{"ro/f", "ro/link", "ro/empty", "ro/full"} {
		if _, st, _ := r.call(wire.KindDelete, path(name)); st.Code != wire.CodePermission {
			t.Errorf("delete %s in a folder without write permission: got %+v, want permission denied", name, st)
		}
		if _, err := os.Lstat(filepath.Join(r.dir, name)); err != nil {
			t.Errorf("%s: %v, want it still there", name, err)
		}
	}
	boxtest.NeedsRoot(t)
	sticky := filepath.Join(t.TempDir(), "sticky")
	if err := os.Mkdir(sticky, 0o777); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(sticky, "f"), nil, 0o666); err != nil {
		t.Fatal(err)
	}
	for d := sticky; d != os.TempDir() && d != "/"; d = filepath.Dir(d) {
		if err := os.Chmod(d, 0o755); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.Chmod(sticky, 0o777|os.ModeSticky); err != nil {
		t.Fatal(err)
	}
	if err := r.asUser(func() error { return emptied(sticky, time.Now().Add(time.Minute)) }); err != unix.EPERM {
		t.Errorf("Empty beside a file of another user: got %v, want %v", err, unix.EPERM)
	}
}

func FuzzParseDirents(f *testing.F) {
	f.Add([]byte("01234567abcdefgh\x18\x00\x04name\x00"))
	f.Add([]byte("01234567abcdefgh\x19\x00\x04name\x00"))             // longer than what is there
	f.Add([]byte("01234567abcdefgh\x18\x00\x04\x00\x00\x00\x00\x00")) // without a name
	f.Add([]byte{})
	f.Fuzz(func(t *testing.T, b []byte) {
		for _, e := range parseDirents(b, nil) {
			if len(e.name) > len(b) || e.name == "." || e.name == ".." || strings.IndexByte(e.name, 0) >= 0 {
				t.Errorf("got the name %q of %q", e.name, b)
			}
		}
	})
}
