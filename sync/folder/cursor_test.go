//go:build linux || darwin

package folder

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

func openCursor(t *testing.T, folders ...string) *cursor {
	t.Helper()
	dir := t.TempDir()
	for _, d := range folders {
		if err := os.MkdirAll(filepath.Join(dir, d), 0o700); err != nil {
			t.Fatal(err)
		}
	}
	c, err := newCursor(dir)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(c.close)
	return c
}

// TestCursor: of the folders on the way to a path, the ones that the last path shares with it stay open, and no others.
func TestCursor(t *testing.T) {
	c := openCursor(t, "a/b/c", "a/bb", "b/b")
	var was []*openFolder
	for _, step := range []struct {
		path   string
		shared int
	}{
		{"f", 0},
		{"a/b/c/f", 0},
		{"a/b/c/g", 3},
		{"a/b/f", 2},
		{"a/bb/f", 1}, // a name that begins alike is another folder
		{"b/b/f", 0},  // so is one of the same name in another place
		{"f", 0},
		{"b/f", 0}, // what was closed is opened anew
	} {
		dir, name, err := c.parent(step.path)
		if err != nil {
			t.Fatalf("%s: %v", step.path, err)
		}
		want := strings.Split(step.path, "/")
		if name != want[len(want)-1] || !slices.Equal(c.names, want[:len(want)-1]) || len(c.dirs) != len(c.names) {
			t.Errorf("%s: got name %q and the open folders %q", step.path, name, c.names)
		}
		if last := len(c.dirs) - 1; last >= 0 && dir != c.dirs[last] || last < 0 && dir != c.root {
			t.Errorf("%s: got another folder than the last open one", step.path)
		}
		for i := range min(len(was), len(c.dirs)) {
			if kept := was[i] == c.dirs[i]; kept != (i < step.shared) {
				t.Errorf("%s: folder %d: got kept open %t, want %t", step.path, i, kept, i < step.shared)
			}
		}
		was = slices.Clone(c.dirs)
	}
}

// TestCursorForget: a folder that is about to be removed is closed with those below it, and no other.
func TestCursorForget(t *testing.T) {
	for p, want := range map[string]int{"a": 0, "a/b": 1, "a/b/c": 2, "a/b/c/d": 3, "b": 3, "a/bb": 3, "a/b/cc": 3, "b/c": 3} {
		c := openCursor(t, "a/b/c")
		if _, _, err := c.parent("a/b/c/f"); err != nil {
			t.Fatal(err)
		}
		if c.forget(p); len(c.dirs) != want || len(c.names) != want {
			t.Errorf("forget %s: got %d folders open, want %d", p, len(c.dirs), want)
		}
	}
}

// TestCursorRefuses: a path whose component is no name leads nowhere, whatever lies there.
func TestCursorRefuses(t *testing.T) {
	for _, p := range []string{"", ".", "..", "/", "/etc/passwd", "a/..", "a/../a/f", "../a", "a//f", "a/", "./f", "a/./f"} {
		c := openCursor(t, "a")
		if dir, name, err := c.parent(p); err == nil || errors.Is(err, fs.ErrNotExist) {
			t.Errorf("%q: got %v, %q, %v, want an error that says so", p, dir, name, err)
		}
	}
}

// TestCursorFailure: a path that can't be reached leaves the cursor usable for the next.
func TestCursorFailure(t *testing.T) {
	c := openCursor(t, "a/b")
	for _, p := range []string{"a/b/none/f", "a/b/f", "a/none/f", "a/b/f"} {
		_, _, err := c.parent(p)
		if missing := strings.Contains(p, "none"); missing != errors.Is(err, fs.ErrNotExist) {
			t.Errorf("%s: got error %v, want one: %t", p, err, missing)
		}
	}
}
