//go:build linux && (amd64 || arm64)

package folder

import (
	"errors"
	"io"
	"io/fs"
	"net"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	wsync "slipway/sync"
)

// fileHandle and folderFiles are what both versions of an open file and of a folder's files can do.
type fileHandle interface {
	io.ReadWriteCloser
	stat(path string) (wsync.Node, error)
	chmod(mode fs.FileMode) error
	setModTime(t time.Time) error
}

type folderFiles interface {
	close()
	names() ([]string, error)
	lstat(name, path string) (wsync.Node, error)
}

// version is one of the two.
type version struct {
	folderFiles
	open   func(name, path string) (fileHandle, wsync.Node, error)
	create func(name string, mode fs.FileMode) (fileHandle, error)
}

// bothVersions opens dir by system calls and by package os.
func bothVersions(t *testing.T, dir string) map[string]version {
	t.Helper()
	root, err := os.OpenRoot(dir)
	if err != nil {
		t.Fatal(err)
	}
	open := func() int {
		list, _ := os.ReadDir("/proc/self/fd")
		return len(list)
	}
	before := open()
	portable, err2 := openPortable(root)
	if got := open(); got != before {
		t.Errorf("the portable one keeps %d descriptors open, want none", got-before)
	}
	fast, err := openFiles(root)
	if err := errors.Join(err, err2); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { fast.close(); portable.close(); root.Close() })
	return map[string]version{
		"fast": {
			fast,
			func(name, path string) (fileHandle, wsync.Node, error) { return fast.open(name, path) },
			func(name string, mode fs.FileMode) (fileHandle, error) { return fast.create(name, mode) },
		},
		"portable": {
			portable,
			func(name, path string) (fileHandle, wsync.Node, error) { return portable.open(name, path) },
			func(name string, mode fs.FileMode) (fileHandle, error) { return portable.create(name, mode) },
		},
	}
}

// everyKind fills dir with one entry of each kind, and returns their names and one that is missing.
func everyKind(t *testing.T, dir string) []string {
	t.Helper()
	at := func(name string) string { return filepath.Join(dir, name) }
	l, err := net.Listen("unix", at("socket"))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { l.Close() })
	err = errors.Join(
		os.WriteFile(at("file"), []byte("content"), 0o640), os.WriteFile(at("empty"), nil, 0o600), //nolint:gosec // modes are what is tested
		os.WriteFile(at("not-utf8-\xff\n"), []byte("x"), 0o600), os.WriteFile(at(strings.Repeat("n", 255)), []byte("x"), 0o600),
		os.WriteFile(at("setuid"), []byte("x"), 0o600), os.Chmod(at("setuid"), 0o755|fs.ModeSetuid|fs.ModeSetgid),
		os.Mkdir(at("dir"), 0o700), os.Mkdir(at("sticky"), 0o700), os.Chmod(at("sticky"), 0o777|fs.ModeSticky), //nolint:gosec // as above
		os.WriteFile(at("old"), []byte("x"), 0o600), os.Chtimes(at("old"), time.Time{}, time.Unix(-5, 123_456_789)),
		os.Symlink("file", at("link")), os.Symlink("dir", at("link-to-dir")), os.Symlink("nowhere", at("dangling")), os.Symlink("loop", at("loop")),
		syscall.Mkfifo(at("pipe"), 0o600),
	)
	if err != nil {
		t.Fatal(err)
	}
	list, err := os.ReadDir(dir)
	if err != nil {
		t.Fatal(err)
	}
	names := []string{"missing"}
	for _, e := range list {
		names = append(names, e.Name())
	}
	return names
}

// TestVersionsAgree: the two versions see the same entries, and open the same ones with the same content.
func TestVersionsAgree(t *testing.T) {
	for _, parent := range []string{t.TempDir(), "/dev/shm"} { // one is in memory
		dir, err := os.MkdirTemp(parent, "slipway-test-") //nolint:usetesting // as above
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { os.RemoveAll(dir) })
		all := everyKind(t, dir)
		v := bothVersions(t, dir)
		a, b := v["fast"], v["portable"]
		listA, errA := a.names()
		listB, errB := b.names()
		slices.Sort(listA)
		slices.Sort(listB)
		if errA != nil || errB != nil || !slices.Equal(listA, listB) || len(listA) != len(all)-1 {
			t.Errorf("names: got %q, %v and %q, %v", listA, errA, listB, errB)
		}
		for _, name := range all {
			nodeA, errA := a.lstat(name, "p")
			nodeB, errB := b.lstat(name, "p")
			if nodeA != nodeB || errors.Is(errA, fs.ErrNotExist) != errors.Is(errB, fs.ErrNotExist) || (errA == nil) != (errB == nil) {
				t.Errorf("lstat of %q: got %+v, %v by system calls, %+v, %v by package os", name, nodeA, errA, nodeB, errB)
			}
			gotA, gotB := readBy(a, name), readBy(b, name)
			if gotA != gotB || (gotA.state == "open") != (nodeA.Type == wsync.TypeFile && name != "missing") {
				t.Errorf("open of %q: got %+v by system calls, %+v by package os", name, gotA, gotB)
			}
		}
	}
}

// opened is what became of an open.
type opened struct {
	state       string
	node, after wsync.Node
	content     string
}

func readBy(v version, name string) opened {
	f, node, err := v.open(name, "p")
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return opened{state: "missing"}
	case err != nil:
		return opened{state: "refused"}
	}
	defer f.Close()
	if n, err := f.Read(nil); n != 0 || err != nil {
		return opened{state: "a read of nothing is the end"}
	}
	content, err := io.ReadAll(f)
	if err != nil {
		return opened{state: err.Error()}
	}
	after, err := f.stat("p")
	if err != nil {
		return opened{state: err.Error()}
	}
	return opened{state: "open", node: node, after: after, content: string(content)}
}

// TestVersionsWrite: both make a file only where nothing is, with the mode and the times that were asked for, and leave the
// time of the last access alone.
func TestVersionsWrite(t *testing.T) {
	for _, which := range []string{"fast", "portable"} {
		t.Run(which, func(t *testing.T) {
			dir := t.TempDir()
			v := bothVersions(t, dir)[which]
			for _, name := range everyKind(t, dir)[1:] {
				if f, err := v.create(name, 0o600); err == nil || !errors.Is(err, fs.ErrExist) {
					t.Errorf("create %q, which is there: got %v, %v, want %v", name, f, err, fs.ErrExist)
				}
			}
			if _, err := os.Lstat(filepath.Join(dir, "nowhere")); err == nil {
				t.Error("create went through a dangling link")
			}
			writeBy(t, v, filepath.Join(dir, "new"))
		})
	}
}

func writeBy(t *testing.T, v version, path string) {
	t.Helper()
	f, err := v.create(filepath.Base(path), 0o666|fs.ModeSetuid)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	accessed := time.Unix(1_000_000, 0)
	for _, mtime := range []time.Time{time.Unix(1_700_000_000, 123_456_789), time.Unix(-1, 5), time.Unix(1<<32, 0)} {
		if err := os.Chtimes(path, accessed, time.Unix(1, 0)); err != nil {
			t.Fatal(err)
		}
		_, wrote := f.Write([]byte("x"))
		err := errors.Join(wrote, f.setModTime(mtime), f.chmod(0o461|fs.ModeSetgid))
		n, statErr := f.stat("p")
		if err != nil || statErr != nil || n.ModTime != mtime.UnixNano() || n.Mode != 0o461 {
			t.Errorf("got %+v, %v, %v, want the time %d and mode 0461", n, err, statErr, mtime.UnixNano())
		}
		info, err := os.Stat(path)
		if err != nil {
			t.Fatal(err)
		}
		if got := info.Sys().(*syscall.Stat_t).Atim.Nano(); got != accessed.UnixNano() {
			t.Errorf("last access: got %d, want it left at %d", got, accessed.UnixNano())
		}
	}
}
