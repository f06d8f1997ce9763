//go:build linux

package workspace

import (
	"os"
	"path/filepath"
	"testing"

	"golang.org/x/sys/unix"
)

func FuzzCheckPath(f *testing.F) {
	for _, s := range []string{".", "a/b", "../a", "a/../b", "/a", "a//b", "a/", "a\x00", "", "..", "a/.."} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, path string) {
		if checkPath(path) != nil {
			return
		}
		if path != "." && (filepath.Clean(path) != path || !filepath.IsLocal(path)) {
			t.Errorf("%q was accepted", path)
		}
	})
}

// Both ways of looking up a folder behave alike.
func TestOpenDir(t *testing.T) {
	root := t.TempDir()
	for _, dir := range []string{"a/b/c", "x"} {
		if err := os.MkdirAll(filepath.Join(root, dir), 0o755); err != nil {
			t.Fatal(err)
		}
	}
	for name, target := range map[string]string{"link": "a", "a/up": "..", "out": "/etc", "loop": "loop"} {
		if err := os.Symlink(target, filepath.Join(root, name)); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.WriteFile(filepath.Join(root, "file"), nil, 0o644); err != nil {
		t.Fatal(err)
	}
	fd, err := unix.Open(root, unix.O_PATH|unix.O_DIRECTORY, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer unix.Close(fd)
	for _, tr := range []tree{{fd: fd}, newTree(fd)} {
		for path, want := range map[string]error{
			".": nil, "a": nil, "a/b/c": nil, "no": unix.ENOENT, "a/no/c": unix.ENOENT, "file": unix.ENOTDIR, "file/x": unix.ENOTDIR,
			"link": unix.ELOOP, "link/b": unix.ELOOP, "a/up/x": unix.ELOOP, "out": unix.ELOOP, "loop": unix.ELOOP,
		} {
			got, err := tr.openDir(path)
			if err != want {
				t.Errorf("openat2 %v: openDir(%q) = %v, want %v", tr.openat2, path, err, want)
			}
			if err == nil {
				_ = unix.Close(got)
			}
		}
	}
}
