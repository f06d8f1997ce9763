package containertest

import (
	"bytes"
	"context"
	"crypto/md5"
	"crypto/sha256"
	"errors"
	"fmt"
	"io"
	"iter"
	"slices"
	"strings"
	"testing"
	"time"

	"slipway/container"
)

func read(t *testing.T, f container.Files, path string) string {
	t.Helper()
	var buf strings.Builder
	if _, err := f.Read(t.Context(), path, &buf, 0); err != nil {
		t.Errorf("read %s: %v", path, err)
	}
	return buf.String()
}

func testFiles(t *testing.T, k kit) {
	ctx, f := t.Context(), k.box(t).Files()
	_, err := f.Stat(ctx, "a")
	is(t, "stat of nothing", err, container.ErrNotFound)
	_, err = f.Read(ctx, "a", io.Discard, 0)
	is(t, "read of nothing", err, container.ErrNotFound)
	_, err = f.List(ctx, "a")
	is(t, "list of nothing", err, container.ErrNotFound)
	must(t, "delete of nothing", f.Delete(ctx, "a/b"))

	must(t, "write", f.Write(ctx, "a/b/c.txt", strings.NewReader("hello"), 0o640))
	info, err := f.Stat(ctx, "a/b/c.txt")
	must(t, "stat", err)
	age := time.Since(time.Unix(0, info.ModTime)).Abs()
	if info.Path != "a/b/c.txt" || info.Type != container.TypeFile || info.Size != 5 || info.Mode != 0o640 || age > time.Hour {
		t.Errorf("stat: got %+v, want the regular file a/b/c.txt of 5 bytes, mode 640, made now", info)
	}
	if got := read(t, f, "a/b/c.txt"); got != "hello" {
		t.Errorf("read: got %q, want %q", got, "hello")
	}
	must(t, "overwrite", f.Write(ctx, "a/b/c.txt", strings.NewReader("bye"), 0o755))
	again, err := f.Stat(ctx, "a/b/c.txt")
	must(t, "stat", err)
	if got := read(t, f, "a/b/c.txt"); got != "bye" || again.Mode != 0o755 || again.Inode == info.Inode {
		t.Errorf("overwritten: got %q, mode %o, inode %d; want %q, mode 755, a new file in the place of inode %d", got, again.Mode, again.Inode, "bye", info.Inode)
	}
	_, err = f.Read(ctx, "a/b/c.txt", io.Discard, 2)
	is(t, "read with a limit", err, container.ErrTooLarge)
	_, err = f.Read(ctx, "a/b/c.txt", io.Discard, 3)
	must(t, "read of just the limit", err)

	_, err = f.Read(ctx, "a/b", io.Discard, 0)
	is(t, "read of a folder", err, container.ErrNotRegular)
	is(t, "write over a folder", f.Write(ctx, "a/b", strings.NewReader(""), 0o644), container.ErrExists, container.ErrNotRegular)
	is(t, "write below a file", f.Write(ctx, "a/b/c.txt/d", strings.NewReader(""), 0o644), container.ErrExists, container.ErrPath, container.ErrNotFound)
	is(t, "mkdir over a file", f.Mkdir(ctx, "a/b/c.txt", 0o755), container.ErrExists)
	must(t, "mkdir", f.Mkdir(ctx, "a/x/y", 0o755))
	must(t, "mkdir again", f.Mkdir(ctx, "a/x/y", 0o755))
	must(t, "write empty", f.Write(ctx, "a/empty", strings.NewReader(""), 0o644))
	list(t, f, ".", "a")
	list(t, f, "a", "a/b", "a/empty", "a/x")
	list(t, f, "a/x/y")

	must(t, "delete", f.Delete(ctx, "a"))
	_, err = f.Stat(ctx, "a/b/c.txt")
	is(t, "stat of what was deleted", err, container.ErrNotFound)
	list(t, f, ".")
}

func list(t *testing.T, f container.Files, path string, want ...string) {
	t.Helper()
	infos, err := f.List(t.Context(), path)
	must(t, "list "+path, err)
	var got []string
	for _, i := range infos {
		got = append(got, i.Path)
	}
	if !slices.Equal(got, want) {
		t.Errorf("list %s: got %v, want %v", path, got, want)
	}
}

func testPaths(t *testing.T, k kit) {
	ctx, f := t.Context(), k.box(t).Files()
	for _, path := range []string{"", "/etc/passwd", "..", "../x", "a/../../x", "a//b", "a/./b", "a/", "a\x00b"} {
		_, err := f.Stat(ctx, path)
		is(t, fmt.Sprintf("stat %q", path), err, container.ErrPath)
		_, err = f.Read(ctx, path, io.Discard, 0)
		is(t, fmt.Sprintf("read %q", path), err, container.ErrPath)
		is(t, fmt.Sprintf("write %q", path), f.Write(ctx, path, strings.NewReader("x"), 0o644), container.ErrPath)
		is(t, fmt.Sprintf("mkdir %q", path), f.Mkdir(ctx, path, 0o755), container.ErrPath)
		is(t, fmt.Sprintf("delete %q", path), f.Delete(ctx, path), container.ErrPath)
	}
	is(t, "delete the workspace", f.Delete(ctx, "."), container.ErrPath)
	entries := []container.NewFile{
		{Path: "link", Type: container.TypeSymlink, Target: ".."},
		{Path: "link/x", Type: container.TypeFile, Size: 1, Content: strings.NewReader("x")},
		{Path: "y", Type: container.TypeFile, Size: 1, Content: strings.NewReader("y")},
	}
	_, err := f.WriteAll(ctx, each(entries))
	is(t, "write all through a link", err, container.ErrPath, container.ErrExists)
	if named, ok := errors.AsType[*container.FileError](err); !ok || named.Path != "link/x" {
		t.Errorf("write all through a link: got %v, want a *container.FileError of link/x, not of an entry after it", err)
	}
	list(t, f, ".", "link")
	odd := "sp ace/new\nline/\xff\xfe.bin"
	must(t, "odd names", f.Write(ctx, odd, strings.NewReader("odd"), 0o644))
	if got := read(t, f, odd); got != "odd" {
		t.Errorf("odd names: got %q, want %q", got, "odd")
	}
}

func each(entries []container.NewFile) iter.Seq2[container.NewFile, error] {
	return func(yield func(container.NewFile, error) bool) {
		for _, e := range entries {
			if !yield(e, nil) {
				return
			}
		}
	}
}

func testBulk(t *testing.T, k kit) {
	ctx, f := t.Context(), k.box(t).Files()
	when := time.Unix(1_500_000_000, 123_000_000)
	big := bytes.Repeat([]byte("0123456789abcdef"), 1<<16)
	entries := []container.NewFile{
		{Path: "d", Type: container.TypeDir, Mode: 0o750, ModTime: when},
		{Path: "d/one", Type: container.TypeFile, Mode: 0o600, ModTime: when, Size: 3, Content: strings.NewReader("one")},
		{Path: "d/empty", Type: container.TypeFile, Mode: 0o644, ModTime: when},
		{Path: "d/big", Type: container.TypeFile, Mode: 0o755, ModTime: when, Size: int64(len(big)), Content: bytes.NewReader(big)},
		{Path: "d/link", Type: container.TypeSymlink, Target: "../no/where"},
	}
	var paths []string
	for i := range 500 {
		path := fmt.Sprintf("d/many/%03d", i)
		paths = append(paths, path)
		entries = append(entries, container.NewFile{Path: path, Type: container.TypeFile, Mode: 0o644, Size: 7, Content: strings.NewReader(fmt.Sprintf("file%03d", i))})
	}
	infos, err := f.WriteAll(ctx, each(entries))
	must(t, "write all", err)
	if len(infos) != len(entries) {
		t.Fatalf("got %d entries, want %d", len(infos), len(entries))
	}
	for i, e := range entries[:5] {
		got, err := f.Stat(ctx, e.Path)
		must(t, "stat", err)
		if got.Path != infos[i].Path || got.Type != e.Type || got.Inode != infos[i].Inode || got.Target != e.Target {
			t.Errorf("%s: Stat got %+v, WriteAll returned %+v, want both the same, of type %c", e.Path, got, infos[i], e.Type)
		}
		if e.Type != container.TypeSymlink && (got.Mode != uint32(e.Mode) || got.ModTime != when.UnixNano() || got.ModTime != infos[i].ModTime || got.ChangeTime != infos[i].ChangeTime) {
			t.Errorf("%s: got mode %o and time %d, reported as %o and %d, want %o and %d", e.Path, got.Mode, got.ModTime, infos[i].Mode, infos[i].ModTime, e.Mode, when.UnixNano())
		}
	}
	testReadAll(t, f, append([]string{"d/big", "d/none", "d/link", "d"}, paths...), big)
}

// testReadAll leaves parts unread on purpose: they must be skipped.
func testReadAll(t *testing.T, f container.Files, paths []string, big []byte) {
	t.Helper()
	i := 0
	err := f.ReadAll(t.Context(), paths, func(c container.FileContent) error {
		path := paths[i]
		i++
		switch path {
		case "d/none":
			is(t, path, c.Err, container.ErrNotFound)
			return nil
		case "d/link", "d":
			is(t, path, c.Err, container.ErrNotRegular, container.ErrPath)
			return nil
		}
		if c.Err != nil || c.Info.Path != path {
			return fmt.Errorf("file %d: got %s, %w, want %s", i, c.Info.Path, c.Err, path)
		}
		if i%3 == 0 {
			return nil
		}
		got, err := io.ReadAll(c.Reader)
		if err != nil {
			return err
		}
		want := []byte("file" + path[max(0, len(path)-3):])
		if path == "d/big" {
			want = big
		}
		if !bytes.Equal(got, want) {
			t.Errorf("%s: got %d bytes, want %d", path, len(got), len(want))
		}
		after, err := c.After()
		if err != nil || after != c.Info {
			t.Errorf("%s: after is %+v, %v, want %+v", path, after, err, c.Info)
		}
		return nil
	})
	must(t, "read all", err)
	if i != len(paths) {
		t.Errorf("got %d files, want %d", i, len(paths))
	}
	stop := errors.New("stop")
	is(t, "read all that its callback ends", f.ReadAll(t.Context(), paths, func(container.FileContent) error { return stop }), stop)
	_, err = f.Stat(t.Context(), ".")
	must(t, "stat after that", err)
}

func testWalk(t *testing.T, k kit) {
	ctx, f := t.Context(), k.box(t).Files()
	for _, path := range []string{"b/2", "b/1", "a", "c/d/e"} {
		must(t, "write", f.Write(ctx, path, strings.NewReader("content of "+path), 0o644))
	}
	var got []string
	must(t, "walk", f.Walk(ctx, func(i container.FileInfo) error {
		got = append(got, i.Path)
		return i.Err
	}))
	if want := []string{"a", "b", "b/1", "b/2", "c", "c/d", "c/d/e"}; !slices.Equal(got, want) {
		t.Errorf("walk: got %v, want %v", got, want)
	}
	stop := errors.New("stop")
	is(t, "walk that its callback ends", f.Walk(ctx, func(container.FileInfo) error { return stop }), stop)

	paths := []string{"c/d/e", "none", "b", "a"}
	var sums []container.Sum
	must(t, "hash", f.Hash(ctx, paths, func(s container.Sum) error {
		sums = append(sums, s)
		return nil
	}))
	if len(sums) != len(paths) {
		t.Fatalf("hash: got %d sums, want %d", len(sums), len(paths))
	}
	is(t, "hash of nothing", sums[1].Err, container.ErrNotFound)
	is(t, "hash of a folder", sums[2].Err, container.ErrNotRegular)
	for _, i := range []int{0, 3} {
		content := []byte("content of " + paths[i])
		if s := sums[i]; s.Err != nil || s.Path != paths[i] || s.Size != int64(len(content)) || s.SHA256 != sha256.Sum256(content) || s.MD5 != md5.Sum(content) {
			t.Errorf("hash of %s: got %+v, want the path, and the size and sums of %q", paths[i], s, content)
		}
	}
}

// testBrokenWrite: a write whose source breaks, or that is canceled, leaves what was there.
func testBrokenWrite(t *testing.T, k kit) {
	ctx, f := t.Context(), k.box(t).Files()
	must(t, "write", f.Write(ctx, "a", strings.NewReader("old"), 0o644))
	broken := errors.New("broken source")
	half := io.MultiReader(strings.NewReader(strings.Repeat("new", 100_000)), iotestErr{broken})
	is(t, "write from a broken source", f.Write(ctx, "a", half, 0o644), broken)
	canceled, cancel := context.WithCancel(ctx)
	cancel()
	if err := f.Write(canceled, "a", strings.NewReader("new"), 0o644); err == nil {
		t.Error("write with a context that has ended: got no error, want one")
	}
	if got := read(t, f, "a"); got != "old" {
		t.Errorf("after broken writes: got %d bytes, want the old content", len(got))
	}
	list(t, f, ".", "a")
	entries := func(yield func(container.NewFile, error) bool) { yield(container.NewFile{}, broken) }
	_, err := f.WriteAll(ctx, entries)
	is(t, "write all from a broken source", err, broken)
	_, err = f.Stat(ctx, "a")
	must(t, "stat after that", err)
}

type iotestErr struct{ err error }

func (r iotestErr) Read([]byte) (int, error) { return 0, r.err }
