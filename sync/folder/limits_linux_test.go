package folder_test

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"runtime"
	"syscall"
	"testing"
	"unsafe"

	wsync "slipway/sync"
	"slipway/sync/wsynctest"
)

// asOwner runs fn without root's right to read what its owner may not. Only this thread loses it.
func asOwner(t *testing.T, fn func()) {
	t.Helper()
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	header := struct{ version, pid uint32 }{version: 0x20080522}
	var had [2]struct{ effective, permitted, inheritable uint32 }
	set := func(call uintptr, data *[2]struct{ effective, permitted, inheritable uint32 }) {
		if _, _, errno := syscall.RawSyscall(call, uintptr(unsafe.Pointer(&header)), uintptr(unsafe.Pointer(data)), 0); errno != 0 { //nolint:gosec // package syscall lacks it
			t.Fatal(errno)
		}
	}
	set(syscall.SYS_CAPGET, &had)
	without := had
	without[0].effective &^= 1<<1 | 1<<2 // CAP_DAC_OVERRIDE and CAP_DAC_READ_SEARCH
	set(syscall.SYS_CAPSET, &without)
	defer set(syscall.SYS_CAPSET, &had)
	fn()
}

// TestUnreadable: what can't be listed, looked at or read is told with the reason, and does not keep the rest from being
// seen. Nothing of it looks as if it were gone: a Push would delete it.
func TestUnreadable(t *testing.T) {
	dir := t.TempDir()
	at := func(name string) string { return filepath.Join(dir, name) }
	for _, d := range []string{"closed", "listed", "open"} {
		must(t, os.Mkdir(at(d), 0o700), os.WriteFile(at(d+"/f"), []byte("x"), 0o644)) //nolint:gosec // modes are what is tested
	}
	must(t, os.WriteFile(at("secret"), []byte("x"), 0),
		os.Chmod(at("closed"), 0o311), os.Chmod(at("listed"), 0o444), os.Chmod(at("open"), 0o755)) //nolint:gosec // as above
	t.Cleanup(func() { must(t, os.Chmod(at("closed"), 0o700), os.Chmod(at("listed"), 0o700)) }) //nolint:gosec // for the removal
	tree := folderTree(t, dir)
	type told struct {
		typ    wsync.NodeType
		denied bool
	}
	got, read := map[string]told{}, map[string]error{}
	var errs [2]error
	before := descriptors(t)
	asOwner(t, func() {
		errs[0] = tree.Walk(t.Context(), func(n wsync.Node) error {
			got[n.Path] = told{n.Type, errors.Is(n.Err, fs.ErrPermission)}
			return nil
		})
		errs[1] = tree.ReadAll(t.Context(), []string{"closed/f", "listed/f", "open/f", "secret"}, func(c wsync.Content) error {
			read[c.Node.Path] = c.Err
			return nil
		})
	})
	must(t, errs[:]...)
	if after := descriptors(t); after > before {
		t.Errorf("got %d descriptors open, want %d as before", after, before)
	}
	want := map[string]told{
		"closed": {wsync.TypeDir, true}, "listed": {wsync.TypeDir, true}, // whose names can be listed, and nothing else
		"open": {wsync.TypeDir, false}, "open/f": {wsync.TypeFile, false}, "secret": {wsync.TypeFile, false},
	}
	if fmt.Sprint(got) != fmt.Sprint(want) {
		t.Errorf("walk: got %v, want %v", got, want)
	}
	for p, denied := range map[string]bool{"listed/f": true, "open/f": false, "secret": true} {
		if err := read[p]; denied != errors.Is(err, fs.ErrPermission) || errors.Is(err, wsync.ErrNotFound) {
			t.Errorf("read %s: got error %v, want one: %t", p, err, denied)
		}
	}
}

// TestUnreadableRoot: a folder that can't be listed is no empty one: a Push would delete everything.
func TestUnreadableRoot(t *testing.T) {
	dir := t.TempDir()
	tree := folderTree(t, dir)
	must(t, os.Chmod(dir, 0o300))
	t.Cleanup(func() { must(t, os.Chmod(dir, 0o700)) }) //nolint:gosec // for the removal
	var err error
	asOwner(t, func() { err = tree.Walk(t.Context(), func(wsync.Node) error { return nil }) })
	if !errors.Is(err, fs.ErrPermission) {
		t.Errorf("got error %v, want %v", err, fs.ErrPermission)
	}
}

// descriptors counts what is open.
func descriptors(t *testing.T) int {
	t.Helper()
	list, err := os.ReadDir("/proc/self/fd")
	must(t, err)
	return len(list)
}

// TestDescriptors: whatever happens, every folder and file is closed again.
func TestDescriptors(t *testing.T) {
	dir := t.TempDir()
	must(t, os.MkdirAll(filepath.Join(dir, "a/b/c"), 0o700), os.WriteFile(filepath.Join(dir, "a/b/c/f"), []byte("x"), 0o600),
		os.WriteFile(filepath.Join(dir, "f"), []byte("x"), 0o600), os.Symlink("a", filepath.Join(dir, "l")), syscall.Mkfifo(filepath.Join(dir, "pipe"), 0o600))
	tree := folderTree(t, dir)
	errMine := errors.New("mine")
	paths := []string{"a/b/c/f", "pipe", "l/b", "a/b", "none/f", "f"}
	failing := wsynctest.File("f", "abc")
	failing.Size = 9
	calls := map[string]func() error{
		"Walk": func() error {
			return tree.Walk(t.Context(), func(n wsync.Node) error {
				if n.Path == "a/b/c/f" {
					return errMine
				}
				return nil
			})
		},
		"ReadAll": func() error { return tree.ReadAll(t.Context(), paths, func(wsync.Content) error { return nil }) },
		"ReadAll, stopped": func() error {
			return tree.ReadAll(t.Context(), paths, func(c wsync.Content) error { _, err := io.Copy(io.Discard, c.Reader); return errors.Join(err, errMine) })
		},
		"WriteAll, failing": func() error {
			_, err := tree.WriteAll(t.Context(), wsynctest.Entries(wsynctest.Dir("a/b/d"), inMemory(wsynctest.File("a/b/d/f", "x"), "x"), failing))
			return err
		},
		"WriteAll": func() error {
			_, err := tree.WriteAll(t.Context(), wsynctest.Entries(wsynctest.Dir("a/b/d"), inMemory(wsynctest.File("a/b/d/f", "x"), "x"), wsynctest.File("a/b/d/g", "x"), wsynctest.Link("a/b/l", "x")))
			return err
		},
		"WriteAll, batches": func() error {
			nodes := []wsync.NewNode{wsynctest.Dir("many")}
			for i := range 300 {
				nodes = append(nodes, inMemory(wsynctest.File(fmt.Sprint("many/", i), "x"), "x"))
			}
			_, err := tree.WriteAll(t.Context(), wsynctest.Entries(nodes...))
			return err
		},
		"Remove": func() error { return tree.Remove(t.Context(), []string{"l/b", "a/b/d", "none"}) },
	}
	before := descriptors(t)
	for name, call := range calls {
		for range 5 {
			call() //nolint:errcheck // what matters is what it leaves open
		}
		if got := descriptors(t); got > before {
			t.Errorf("%s: got %d descriptors open, want %d as before", name, got, before)
			before = got
		}
	}
}
