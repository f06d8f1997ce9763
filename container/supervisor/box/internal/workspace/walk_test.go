//go:build linux

package workspace

import (
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"

	"golang.org/x/sys/unix"

	"slipway/container/supervisor/internal/wire"
)

// makeTree makes folders (with a slash at the end), links (with "->") and files, owned by the commands' user.
func (r *rig) makeTree(entries ...string) {
	r.t.Helper()
	for _, e := range entries {
		name, target, link := strings.Cut(e, " -> ")
		full := filepath.Join(r.dir, name)
		var err error
		switch {
		case link:
			err = os.Symlink(target, full)
		case strings.HasSuffix(name, "/"):
			err = os.Mkdir(full, 0o755)
		default:
			err = os.WriteFile(full, []byte("content of "+name), 0o644)
		}
		if err == nil {
			err = os.Lchown(full, r.server.uid, r.server.gid)
		}
		if err != nil {
			r.t.Fatal(err)
		}
	}
}

// entries runs List or Walk and returns a line for each entry: type, path, target, and "!" with the code of its error.
func (r *rig) entries(kind wire.Kind, params func(*wire.Enc)) []string {
	r.t.Helper()
	data, st, _ := r.call(kind, params)
	if st.Code != wire.CodeOK {
		r.t.Fatalf("got %+v, want OK", st)
	}
	var lines []string
	records(r.t, data, func(d *wire.Dec) {
		st, info := wire.GetStatus(d), wire.GetInfo(d)
		line := string(info.Type) + " " + info.Path
		if info.Target != "" {
			line += " -> " + info.Target
		}
		if st.Code != wire.CodeOK {
			line += " !" + strconv.Itoa(int(st.Code))
		}
		lines = append(lines, line)
	})
	return lines
}

// Walk reports a folder before what it holds, siblings by name, follows no link, and goes on past what can't be read.
func TestWalk(t *testing.T) {
	r := setup(t)
	r.makeTree("b/", "b/c/", "b/c/f", "b/a.txt", "b/l -> nowhere", "a/", "closed/", "closed/in", "root -> /")
	r.do(func(dir string) error { return os.Chmod(filepath.Join(dir, "closed"), 0) })
	want := []string{
		"d a", "d b", "f b/a.txt", "d b/c", "f b/c/f", "l b/l -> nowhere",
		"d closed !" + strconv.Itoa(int(wire.CodePermission)), "l root -> /",
	}
	if got := r.entries(wire.KindWalk, nil); !slices.Equal(got, want) {
		t.Errorf("got  %q\nwant %q", got, want)
	}
	want = []string{"f b/a.txt", "d b/c", "l b/l -> nowhere"}
	if got := r.entries(wire.KindList, path("b")); !slices.Equal(got, want) {
		t.Errorf("list: got %q, want %q", got, want)
	}
}

// What lies deeper than maxDepth is reported, not visited: neither stack nor descriptors grow with a command's tree.
func TestWalkDepth(t *testing.T) {
	r := setup(t)
	fd := r.deep(maxDepth + 10)
	_ = unix.Close(fd)
	got := r.entries(wire.KindWalk, nil)
	if len(got) != maxDepth+1 {
		t.Errorf("got %d entries, want %d", len(got), maxDepth+1)
	}
	last := got[len(got)-1]
	if strings.Count(last, "/") != maxDepth || !strings.HasSuffix(last, "!"+strconv.Itoa(int(wire.CodeUnsupported))) {
		t.Errorf("the deepest: got %q, want an error at depth %d", last, maxDepth+1)
	}
}

// deep makes a chain of folders named d and returns its end.
func (r *rig) deep(depth int) int {
	r.t.Helper()
	fd, err := unix.Open(r.dir, unix.O_PATH|unix.O_DIRECTORY, 0)
	for i := 0; i < depth && err == nil; i++ {
		if err = unix.Mkdirat(fd, "d", 0o755); err == nil {
			err = unix.Fchownat(fd, "d", r.server.uid, r.server.gid, 0)
		}
		next := -1
		if err == nil {
			next, err = unix.Openat(fd, "d", unix.O_PATH|unix.O_DIRECTORY, 0)
		}
		_ = unix.Close(fd)
		fd = next
	}
	if err != nil {
		r.t.Fatal(err)
	}
	return fd
}

// A list of more entries than a window holds waits for its reader, and is complete.
func TestListOfMany(t *testing.T) {
	r := setup(t)
	const n = 2000
	r.do(func(dir string) error {
		for i := range n {
			if err := os.WriteFile(filepath.Join(dir, strings.Repeat("long", 40)+strconv.Itoa(i)), nil, 0o644); err != nil {
				return err
			}
		}
		return nil
	})
	got := r.entries(wire.KindList, path("."))
	if len(got) != n || !slices.IsSorted(got) {
		t.Errorf("got %d entries, sorted %t; want %d, sorted", len(got), slices.IsSorted(got), n)
	}
}
