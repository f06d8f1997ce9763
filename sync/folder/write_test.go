//go:build linux || darwin

package folder_test

import (
	"context"
	"errors"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	wsync "slipway/sync"
	"slipway/sync/wsynctest"
)

// inMemory is n as a Pull hands over small files.
func inMemory(n wsync.NewNode, content string) wsync.NewNode {
	n.Data = []byte(content)
	return n
}

func listed(t *testing.T, dir string) []string {
	t.Helper()
	list, err := os.ReadDir(dir)
	must(t, err)
	var names []string
	for _, e := range list {
		names = append(names, e.Name())
	}
	return names
}

// readerFunc reads by calling itself.
type readerFunc func([]byte) (int, error)

func (f readerFunc) Read(b []byte) (int, error) { return f(b) }

// TestReplaceIsWhole: until the new content of a file is whole, its name leads to the old one, and what is written beside
// it can't be read by others, nor taken for a file of the workspace.
func TestReplaceIsWhole(t *testing.T) {
	dir := t.TempDir()
	path := filepath.Join(dir, "f")
	must(t, os.WriteFile(path, []byte("old"), 0o644)) //nolint:gosec // the mode is what is tested
	looks := 0
	content := io.MultiReader(strings.NewReader("new"), readerFunc(func([]byte) (int, error) {
		if got, err := os.ReadFile(path); string(got) != "old" || err != nil {
			t.Errorf("while it is written: got %q, %v, want the old content", got, err)
		}
		for _, name := range listed(t, dir) {
			if name == "f" {
				continue
			}
			looks++
			info, err := os.Stat(filepath.Join(dir, name))
			must(t, err)
			if !strings.HasPrefix(name, ".sandbox-state") || info.Mode().Perm()&^0o600 != 0 {
				t.Errorf("beside it: got %s with mode %v, want a reserved name, and 0600 at most", name, info.Mode())
			}
		}
		return 0, io.EOF
	}), strings.NewReader("er"))
	made, err := folderTree(t, dir).WriteAll(t.Context(), wsynctest.Entries(
		wsync.NewNode{Path: "f", Type: wsync.TypeFile, Mode: 0o600, Size: 5, Content: content}))
	must(t, err)
	if looks != 1 {
		t.Errorf("got %d files beside it, want one", looks)
	}
	if got, err := os.ReadFile(path); string(got) != "newer" || err != nil || made[0].Mode != 0o600 {
		t.Errorf("got %q, %v and %+v, want the new content with mode 0600", got, err, made[0])
	}
	if names := listed(t, dir); !slices.Equal(names, []string{"f"}) {
		t.Errorf("left %q, want f only", names)
	}
}

// TestFailedWrite: a write that fails leaves what was there, and nothing beside it.
func TestFailedWrite(t *testing.T) {
	errDisk := errors.New("disk on fire")
	long := strings.Repeat("n", 256)
	short := wsynctest.File("new", "abc")
	short.Size = 4
	over := wsynctest.File("old", "abc")
	over.Size = 4
	failing := wsynctest.File("old", "abc")
	failing.Content = io.MultiReader(strings.NewReader("ab"), readerFunc(func([]byte) (int, error) { return 0, errDisk }))
	for name, c := range map[string]struct {
		entry wsync.NewNode
		want  error
		names string
	}{
		"content ends early, new":         {short, nil, "content ends after 3 of 4 bytes"},
		"content ends early, replaced":    {over, nil, "content ends after 3 of 4 bytes"},
		"content can't be read":           {failing, errDisk, `"old"`},
		"file over a folder":              {wsynctest.File("full", "x"), nil, `"full"`},
		"file in memory over a folder":    {inMemory(wsynctest.File("full", "x"), "x"), nil, `"full"`},
		"link over a folder":              {wsynctest.Link("full", "old"), fs.ErrExist, `"full"`},
		"folder below a file":             {wsynctest.Dir("old/d"), nil, `"old/d"`},
		"file below a link":               {wsynctest.File("link/f", "x"), nil, `"link/f"`},
		"folder below a link":             {wsynctest.Dir("link/d"), nil, `"link/d"`},
		"link below a link":               {wsynctest.Link("link/l", "x"), nil, `"link/l"`},
		"file in a missing folder":        {wsynctest.File("none/f", "x"), fs.ErrNotExist, `"none/f"`},
		"a name that is too long":         {wsynctest.File(long, "x"), syscall.ENAMETOOLONG, long},
		"in memory, too long":             {inMemory(wsynctest.File(long, "x"), "x"), syscall.ENAMETOOLONG, long},
		"a link's name that is too long":  {wsynctest.Link(long, "x"), syscall.ENAMETOOLONG, long},
		"a name with a NUL":               {wsynctest.File("a\x00b", "x"), nil, `"a\x00b"`},
		"a type that can't be made":       {wsync.NewNode{Path: "s", Type: wsync.TypeOther}, nil, "unknown type"},
		"a link without a target's bytes": {wsynctest.Link("l", ""), nil, `"l"`},
	} {
		t.Run(name, func(t *testing.T) {
			dir := t.TempDir()
			at := func(name string) string { return filepath.Join(dir, name) }
			must(t, os.WriteFile(at("old"), []byte("old"), 0o640), os.MkdirAll(at("full"), 0o700), //nolint:gosec // modes are what is tested
				os.WriteFile(at("full/f"), []byte("inner"), 0o600), os.Symlink("full", at("link")))
			tree := folderTree(t, dir)
			before, err := wsynctest.Listing(t.Context(), tree)
			must(t, err)
			_, err = tree.WriteAll(t.Context(), wsynctest.Entries(c.entry))
			if err == nil || c.want != nil && !errors.Is(err, c.want) || !strings.Contains(err.Error(), c.names) {
				t.Errorf("got error %v, want %v that names %s", err, c.want, c.names)
			}
			after, err := wsynctest.Listing(t.Context(), tree)
			must(t, err)
			for p, was := range before {
				if after[p] != was {
					t.Errorf("%s: got %q, want it left as %q", p, after[p], was)
				}
			}
			if len(after) != len(before) {
				t.Errorf("left %q, want what was there before", listed(t, dir))
			}
		})
	}
}

// TestReplaceKinds: what replaces a link stands in its place, and what the link led to stays as it is.
func TestReplaceKinds(t *testing.T) {
	dir, outside := t.TempDir(), t.TempDir()
	must(t, os.WriteFile(filepath.Join(outside, "f"), []byte("outside"), 0o600))
	for _, name := range []string{"file", "memory", "dir", "link"} {
		must(t, os.Symlink(outside, filepath.Join(dir, name)), os.Symlink(filepath.Join(outside, "f"), filepath.Join(dir, name+"-of-file")))
	}
	var entries []wsync.NewNode
	for _, suffix := range []string{"", "-of-file"} {
		entries = append(entries, wsynctest.Dir("dir"+suffix), wsynctest.File("dir"+suffix+"/f", "inner"), wsynctest.File("file"+suffix, "new"),
			inMemory(wsynctest.File("memory"+suffix, "new"), "new"), wsynctest.Link("link"+suffix, "elsewhere"))
	}
	made, err := folderTree(t, dir).WriteAll(t.Context(), wsynctest.Entries(entries...))
	must(t, err)
	for i, n := range made {
		if n.Path != entries[i].Path || n.Type != entries[i].Type || n.Target != entries[i].Target {
			t.Errorf("got %+v, want %s of type %c with target %q", n, entries[i].Path, entries[i].Type, entries[i].Target)
		}
	}
	if names := listed(t, outside); !slices.Equal(names, []string{"f"}) {
		t.Errorf("what the links led to: got %q, want f only", names)
	}
	if got, err := os.ReadFile(filepath.Join(outside, "f")); string(got) != "outside" || err != nil {
		t.Errorf("what the links led to: got %q, %v, want it unchanged", got, err)
	}
}

// TestModes: nine bits are set whatever the umask says, and no others; a folder that is there keeps its files and gets the
// new mode.
func TestModes(t *testing.T) {
	old := syscall.Umask(0o077)
	defer syscall.Umask(old)
	dir := t.TempDir()
	must(t, os.Mkdir(filepath.Join(dir, "there"), 0o700), os.WriteFile(filepath.Join(dir, "there/f"), nil, 0o600))
	var entries []wsync.NewNode
	for i, mode := range []fs.FileMode{0o666, 0o644, 0o777, 0o400, 0, 0o755 | fs.ModeSetuid, 0o755 | fs.ModeSetgid | fs.ModeSticky} {
		stream, memory, replaced := wsynctest.File("s"+string(rune('0'+i)), "x"), wsynctest.File("m"+string(rune('0'+i)), "x"), wsynctest.File("r"+string(rune('0'+i)), "x")
		must(t, os.WriteFile(filepath.Join(dir, replaced.Path), []byte("old"), 0o600))
		stream.Mode, memory.Mode, replaced.Mode = mode, mode, mode
		entries = append(entries, stream, inMemory(memory, "x"), replaced)
	}
	for _, d := range []struct {
		path string
		mode fs.FileMode
	}{{"d1", 0o777}, {"d2", 0o770 | fs.ModeSticky | fs.ModeSetgid}, {"there", 0o751}} {
		n := wsynctest.Dir(d.path)
		n.Mode = d.mode
		entries = append(entries, n)
	}
	made, err := folderTree(t, dir).WriteAll(t.Context(), wsynctest.Entries(entries...))
	must(t, err)
	for i, n := range made {
		info, err := os.Lstat(filepath.Join(dir, entries[i].Path))
		must(t, err)
		if want := entries[i].Mode.Perm(); n.Mode != uint32(want) || info.Mode()&^fs.ModeDir != want {
			t.Errorf("%s: got mode %04o, on the disk %v, want %04o", n.Path, n.Mode, info.Mode(), want)
		}
	}
	if names := listed(t, filepath.Join(dir, "there")); !slices.Equal(names, []string{"f"}) {
		t.Errorf("the folder that was there holds %q, want f", names)
	}
}

// TestTimes: a time is set to the nanosecond, before 1970 too; without one the file's is now.
func TestTimes(t *testing.T) {
	dir := t.TempDir()
	began := time.Now().Add(-time.Minute)
	var entries []wsync.NewNode
	for i, at := range []time.Time{time.Unix(1_700_000_000, 123_456_789), time.Unix(-2, 1), time.Unix(1<<33, 0), {}} {
		stream, memory := wsynctest.File("s"+string(rune('0'+i)), "x"), wsynctest.File("m"+string(rune('0'+i)), "x")
		stream.ModTime, memory.ModTime = at, at
		entries = append(entries, stream, inMemory(memory, "x"))
	}
	made, err := folderTree(t, dir).WriteAll(t.Context(), wsynctest.Entries(entries...))
	must(t, err)
	for i, n := range made {
		info, err := os.Stat(filepath.Join(dir, n.Path))
		must(t, err)
		want := entries[i].ModTime
		if want.IsZero() {
			if info.ModTime().Before(began) {
				t.Errorf("%s: got %v, want about now", n.Path, info.ModTime())
			}
			want = info.ModTime()
		}
		if !info.ModTime().Equal(want) || n.ModTime != want.UnixNano() {
			t.Errorf("%s: got %v on the disk and %d, want %v", n.Path, info.ModTime(), n.ModTime, want)
		}
	}
}

// TestLinksWait: a folder or a link is made only when the files before it are, so that no component of a file's path turns
// into a link while the file is written by another goroutine.
func TestLinksWait(t *testing.T) {
	for name, last := range map[string]wsync.NewNode{"link": wsynctest.Link("l", "d"), "folder": wsynctest.Dir("e")} {
		dir := t.TempDir()
		entries := []wsync.NewNode{wsynctest.Dir("d"), inMemory(wsynctest.File("d/f", "x"), "x"), last}
		_, err := folderTree(t, dir).WriteAll(t.Context(), func(yield func(wsync.NewNode, error) bool) {
			for _, n := range entries {
				if !yield(n, nil) {
					return
				}
			}
			if _, err := os.Lstat(filepath.Join(dir, "d/f")); err != nil {
				t.Errorf("%s: made before the file: %v", name, err)
			}
		})
		must(t, err)
	}
}

// TestWriteEnds: a context that ends, or an iterator that fails, ends the writing with that cause.
func TestWriteEnds(t *testing.T) {
	errStop := errors.New("stop")
	file := func(name string) wsync.NewNode { return inMemory(wsynctest.File(name, "x"), "x") }
	for name, fail := range map[string]func(cancel context.CancelCauseFunc, yield func(wsync.NewNode, error) bool){
		"context, before": func(cancel context.CancelCauseFunc, yield func(wsync.NewNode, error) bool) {
			cancel(errStop)
			yield(file("b"), nil)
		},
		"context, after the last": func(cancel context.CancelCauseFunc, _ func(wsync.NewNode, error) bool) { cancel(errStop) },
		"iterator": func(_ context.CancelCauseFunc, yield func(wsync.NewNode, error) bool) {
			yield(wsync.NewNode{}, errStop)
		},
	} {
		dir := t.TempDir()
		ctx, cancel := context.WithCancelCause(t.Context())
		made, err := folderTree(t, dir).WriteAll(ctx, func(yield func(wsync.NewNode, error) bool) {
			if yield(file("a"), nil) {
				fail(cancel, yield)
			}
		})
		if !errors.Is(err, errStop) || made != nil {
			t.Errorf("%s: got %v, %v, want %v", name, made, err, errStop)
		}
		if names := listed(t, dir); len(names) > 0 {
			t.Errorf("%s: made %q after it", name, names)
		}
		cancel(nil)
	}
}
