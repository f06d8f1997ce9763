//go:build linux || darwin

package folder_test

import (
	"context"
	"errors"
	"io"
	"io/fs"
	"net"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	wsync "slipway/sync"
	"slipway/sync/folder"
	"slipway/sync/wsynctest"
)

func walked(t *testing.T, tree wsync.Tree) (paths []string, byPath map[string]wsync.Node) {
	t.Helper()
	byPath = map[string]wsync.Node{}
	must(t, tree.Walk(t.Context(), func(n wsync.Node) error {
		paths = append(paths, n.Path)
		byPath[n.Path] = n
		return nil
	}))
	return paths, byPath
}

// TestNew: only a folder is one, and it stays the same when the program goes to another.
func TestNew(t *testing.T) {
	dir := t.TempDir()
	must(t, os.WriteFile(filepath.Join(dir, "file"), nil, 0o600), os.Mkdir(filepath.Join(dir, "sub"), 0o700), os.WriteFile(filepath.Join(dir, "sub/f"), nil, 0o600))
	if _, err := folder.New(filepath.Join(dir, "none")); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("a missing folder: got error %v, want %v", err, fs.ErrNotExist)
	}
	if _, err := folder.New(filepath.Join(dir, "file")); err == nil || !strings.Contains(err.Error(), "not a folder") {
		t.Errorf("a file: got error %v, want one that says so", err)
	}
	t.Chdir(dir)
	tree, err := folder.New("sub")
	must(t, err)
	t.Chdir(t.TempDir())
	if paths, _ := walked(t, tree); !slices.Equal(paths, []string{"f"}) {
		t.Errorf("after the program went elsewhere: got %q, want f", paths)
	}
}

// TestRootGone: a root that went away, or is no folder any more, is told by each method, and is no empty folder.
func TestRootGone(t *testing.T) {
	for name, put := range map[string]func(dir string) error{
		"gone":   func(string) error { return nil },
		"a file": func(dir string) error { return os.WriteFile(dir, nil, 0o600) },
	} {
		dir := filepath.Join(t.TempDir(), "root")
		must(t, os.Mkdir(dir, 0o700))
		tree := folderTree(t, dir)
		must(t, os.Remove(dir), put(dir))
		_, write := tree.WriteAll(t.Context(), wsynctest.Entries(wsynctest.File("f", "x")))
		for method, err := range map[string]error{
			"Walk":     tree.Walk(t.Context(), func(wsync.Node) error { return nil }),
			"Hash":     tree.Hash(t.Context(), []string{"f"}, func(wsync.Sum) error { return nil }),
			"ReadAll":  tree.ReadAll(t.Context(), []string{"f"}, func(wsync.Content) error { return nil }),
			"Remove":   tree.Remove(t.Context(), []string{"f"}),
			"WriteAll": write,
		} {
			if err == nil || !strings.Contains(err.Error(), "open the folder") {
				t.Errorf("%s, %s: got error %v, want one about the root", name, method, err)
			}
		}
	}
}

// TestWalkOrder: siblings come by their names' bytes, and what a folder holds comes right after it.
func TestWalkOrder(t *testing.T) {
	tree := wsynctest.NewFolder(t, map[string]string{
		"a/z": "", "a-b": "", "a.b": "", "B": "", "b": "", "a/b/c": "", "-rf": "", " x": "", "new\nline": "", "\xff": "", "ü": "", "a\\b": "",
	})
	want := []string{" x", "-rf", "B", "a", "a/b", "a/b/c", "a/z", "a-b", "a.b", "a\\b", "b", "new\nline", "ü", "\xff"}
	if got, _ := walked(t, tree); !slices.Equal(got, want) {
		t.Errorf("got %q, want %q", got, want)
	}
}

// TestWalkKinds: each entry is told as what it is, special bits included, and a link is not followed.
func TestWalkKinds(t *testing.T) {
	dir := t.TempDir()
	at := func(name string) string { return filepath.Join(dir, name) }
	// A socket's path has to be short.
	t.Chdir(dir)
	l, err := net.Listen("unix", "socket")
	must(t, err)
	defer l.Close()
	must(t, os.WriteFile(at("setuid"), []byte("four"), 0o600), os.Chmod(at("setuid"), 0o751|fs.ModeSetuid), os.WriteFile(at("setgid"), nil, 0o600),
		os.Chmod(at("setgid"), 0o640|fs.ModeSetgid), os.Mkdir(at("sticky"), 0o700), os.Chmod(at("sticky"), 0o777|fs.ModeSticky), //nolint:gosec // modes are what is tested
		os.WriteFile(at("sticky/f"), nil, 0o600), os.Symlink("sticky", at("link")), os.Symlink("../..", at("up")), os.Symlink("link", at("link2")))
	_, got := walked(t, folderTree(t, dir))
	for path, want := range map[string]wsync.Node{
		"setuid":   {Type: wsync.TypeFile, Mode: 0o4751, Size: 4},
		"setgid":   {Type: wsync.TypeFile, Mode: 0o2640},
		"sticky":   {Type: wsync.TypeDir, Mode: 0o1777},
		"sticky/f": {Type: wsync.TypeFile, Mode: 0o600},
		"link":     {Type: wsync.TypeSymlink, Target: "sticky"},
		"up":       {Type: wsync.TypeSymlink, Target: "../.."},
		"link2":    {Type: wsync.TypeSymlink, Target: "link"},
		"socket":   {Type: wsync.TypeOther},
	} {
		n, ok := got[path]
		if path == "socket" || n.Type == wsync.TypeSymlink {
			n.Mode = 0
		}
		if n.Type == wsync.TypeSymlink {
			n.Size = 0
		}
		if !ok || n.Type != want.Type || n.Mode != want.Mode || n.Size != want.Size || n.Target != want.Target || n.Err != nil {
			t.Errorf("%s: got %+v, want %+v", path, n, want)
		}
		delete(got, path)
	}
	if len(got) > 0 {
		t.Errorf("got %v besides: a link was followed", got)
	}
}

// TestWalkMoving: what goes away or turns into a link during the walk is left out or told as a link, and is no error.
func TestWalkMoving(t *testing.T) {
	dir, outside := t.TempDir(), t.TempDir()
	must(t, os.WriteFile(filepath.Join(outside, "secret"), nil, 0o600))
	for _, d := range []string{"a", "b", "c/in", "d", "e"} {
		must(t, os.MkdirAll(filepath.Join(dir, d), 0o700))
	}
	must(t, os.WriteFile(filepath.Join(dir, "d/f"), nil, 0o600))
	got := map[string]wsync.Node{}
	must(t, folderTree(t, dir).Walk(t.Context(), func(n wsync.Node) error {
		if n.Path == "a" { // the folder was listed already
			must(t, os.Remove(filepath.Join(dir, "b")), os.Rename(filepath.Join(dir, "c"), filepath.Join(outside, "c")),
				os.Symlink(outside, filepath.Join(dir, "c")))
		}
		if n.Path == "d" {
			must(t, os.Remove(filepath.Join(dir, "d/f")))
		}
		got[n.Path] = n
		return nil
	}))
	if len(got) != 4 || got["c"].Type != wsync.TypeSymlink || got["c"].Err != nil || got["e"].Type != wsync.TypeDir {
		t.Errorf("got %v, want the folders a, d and e, and the link c", got)
	}
}

// TestEnds: a context that has ended, or ends on the way, ends each method with its cause.
func TestEnds(t *testing.T) {
	errStop := errors.New("stop")
	tree := wsynctest.NewFolder(t, map[string]string{"a": "x", "b": "x", "d/c": "x"})
	paths := []string{"a", "b", "d/c"}
	for name, call := range map[string]func(ctx context.Context, each func()) error{
		"Walk": func(ctx context.Context, each func()) error {
			return tree.Walk(ctx, func(wsync.Node) error { each(); return nil })
		},
		"Hash": func(ctx context.Context, each func()) error {
			return tree.Hash(ctx, paths, func(wsync.Sum) error { each(); return nil })
		},
		"ReadAll": func(ctx context.Context, each func()) error {
			return tree.ReadAll(ctx, paths, func(wsync.Content) error { each(); return nil })
		},
		"Remove": func(ctx context.Context, each func()) error {
			if ctx.Err() == nil {
				each() // it calls nothing back
			}
			return tree.Remove(ctx, paths)
		},
	} {
		for _, calls := range []int{0, 1} {
			ctx, cancel := context.WithCancelCause(t.Context())
			if calls == 0 {
				cancel(errStop)
			}
			got := 0
			err := call(ctx, func() { got++; cancel(errStop) })
			if !errors.Is(err, errStop) || got != calls {
				t.Errorf("%s: got error %v after %d entries, want %v after %d", name, err, got, errStop, calls)
			}
		}
	}
	if all, _ := walked(t, tree); len(all) != 4 {
		t.Errorf("left %q, want everything", all)
	}
}

// TestReadGrowing: what is read of a file ends with the size that was told, and After tells what the file has become.
func TestReadGrowing(t *testing.T) {
	for name, c := range map[string]struct {
		content string // afterwards
		read    string
	}{
		"grows":   {"12345678", "1234"},
		"shrinks": {"12", "12"},
	} {
		dir := t.TempDir()
		must(t, os.WriteFile(filepath.Join(dir, "f"), []byte("1234"), 0o600))
		must(t, folderTree(t, dir).ReadAll(t.Context(), []string{"f"}, func(x wsync.Content) error {
			must(t, x.Err, os.WriteFile(filepath.Join(dir, "f"), []byte(c.content), 0o600))
			got, err := io.ReadAll(x.Reader)
			after, afterErr := x.After()
			must(t, err, afterErr)
			if string(got) != c.read || x.Node.Size != 4 || after.Size != int64(len(c.content)) || after.Path != "f" || after.Inode != x.Node.Inode {
				t.Errorf("%s: got %q, node %+v, after %+v, want %q and %d bytes afterwards", name, got, x.Node, after, c.read, len(c.content))
			}
			return nil
		}))
	}
}

// TestHostilePaths: no method reads, lists or removes by a path that is none, or through a link.
func TestHostilePaths(t *testing.T) {
	outer := t.TempDir()
	dir := filepath.Join(outer, "tree")
	at := func(name string) string { return filepath.Join(dir, name) }
	must(t, os.MkdirAll(at("d"), 0o700), os.WriteFile(at("d/f"), []byte("inner"), 0o600), os.WriteFile(filepath.Join(outer, "secret"), []byte("secret"), 0o600),
		os.Symlink("d", at("link")), os.Symlink(outer, at("out")), os.Symlink("../secret", at("file")))
	tree := folderTree(t, dir)
	before, err := wsynctest.Listing(t.Context(), folderTree(t, outer))
	must(t, err)
	for _, p := range []string{"../secret", "d/../../secret", "/etc/passwd", "", ".", "..", "d//f", "d/./f", "d/", "link/f", "out/secret", "out/tree/d/f", "file", "d/f/g", "d\x00"} {
		must(t, tree.ReadAll(t.Context(), []string{p}, func(c wsync.Content) error {
			if c.Err == nil || c.Node.Path != p {
				t.Errorf("read %q: got %+v, want an error", p, c.Node)
			}
			return nil
		}))
		must(t, tree.Hash(t.Context(), []string{p}, func(s wsync.Sum) error {
			if s.Err == nil || s.Size != 0 {
				t.Errorf("hash %q: got %+v, want an error", p, s)
			}
			return nil
		}))
		if p == "file" {
			continue // a link itself may be removed
		}
		err := tree.Remove(t.Context(), []string{p})
		if through := strings.HasPrefix(p, "link/") || strings.HasPrefix(p, "out/") || p == "d/f/g"; through != (err == nil) {
			t.Errorf("remove %q: got error %v, want one: %t", p, err, !through)
		}
	}
	if after, err := wsynctest.Listing(t.Context(), folderTree(t, outer)); err != nil || len(after) != len(before) {
		t.Errorf("left %v, %v, want everything", after, err)
	}
	must(t, tree.Remove(t.Context(), []string{"d", "link", "out", "file", "d/f"}))
	if names := listed(t, dir); len(names) > 0 {
		t.Errorf("left %q, want nothing", names)
	}
	if got, err := os.ReadFile(filepath.Join(outer, "secret")); string(got) != "secret" || err != nil {
		t.Errorf("what a link led to: got %q, %v", got, err)
	}
}
