//go:build linux || darwin

package wsync_test

import (
	"archive/tar"
	"bytes"
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"io"
	"iter"
	"maps"
	"os"
	"path"
	"slices"
	"strings"
	"testing"

	wsync "slipway/sync"
	"slipway/sync/wsynctest"
)

// TestCalls: what a push costs. A write that is confirmed is not read back, and content that the store has is not sent.
func TestCalls(t *testing.T) {
	b := setup(t, wsync.Options{PackSize: 64 << 10})
	x := b.pull()
	large := strings.Repeat("l", 70<<10)
	for _, step := range []struct {
		what   string
		change func()
		want   map[wsynctest.Op]int
	}{
		{"nothing", func() {}, map[wsynctest.Op]int{}},
		{"a pack, a version and the head", func() { x.write("small", "x") }, map[wsynctest.Op]int{wsynctest.OpPut: 3}},
		{"nothing, again", func() {}, map[wsynctest.Op]int{}},
		{"two large files of the same content", func() { x.write("one", large); x.write("two", large) }, map[wsynctest.Op]int{wsynctest.OpPut: 2, wsynctest.OpPutStream: 1}},
		{"a large file under another name", func() { must(t, os.Rename(x.path("one"), x.path("three"))) }, map[wsynctest.Op]int{wsynctest.OpPut: 2}},
		{"an empty file", func() { x.write("empty", "") }, map[wsynctest.Op]int{wsynctest.OpPut: 2}},
		{"a mode", func() { must(t, os.Chmod(x.path("small"), 0o700)) }, map[wsynctest.Op]int{wsynctest.OpPut: 2}}, //nolint:gosec // a mode is what is tested
		{"a deletion", func() { x.remove("two") }, map[wsynctest.Op]int{wsynctest.OpPut: 2}},
	} {
		step.change()
		b.store.ResetCounts()
		x.mustPush()
		if calls, _, _ := b.store.Counts(); !maps.Equal(calls, step.want) {
			t.Errorf("%s: got calls %v, want %v", step.what, calls, step.want)
		}
	}
	b.wantSame(b.pull(), x)
}

// clocked is a tree whose files have the times that the test gives them, and that notes what is read.
type clocked struct {
	wsync.Tree
	times  func(path string) int64
	hashed []string
	read   []string
}

func (c *clocked) set(n *wsync.Node) {
	if n.Type == wsync.TypeFile {
		n.ModTime, n.ChangeTime = c.times(n.Path), c.times(n.Path)
	}
}

func (c *clocked) Walk(ctx context.Context, fn func(wsync.Node) error) error {
	return c.Tree.Walk(ctx, func(n wsync.Node) error { c.set(&n); return fn(n) })
}

func (c *clocked) Hash(ctx context.Context, paths []string, fn func(wsync.Sum) error) error {
	c.hashed = append(c.hashed, paths...)
	return c.Tree.Hash(ctx, paths, fn)
}

func (c *clocked) ReadAll(ctx context.Context, paths []string, fn func(wsync.Content) error) error {
	c.read = append(c.read, paths...)
	return c.Tree.ReadAll(ctx, paths, func(x wsync.Content) error {
		after := x.After
		x.After = func() (wsync.Node, error) { n, err := after(); c.set(&n); return n, err }
		c.set(&x.Node)
		return fn(x)
	})
}

func (c *clocked) WriteAll(ctx context.Context, entries iter.Seq2[wsync.NewNode, error]) ([]wsync.Node, error) {
	nodes, err := c.Tree.WriteAll(ctx, entries)
	for i := range nodes {
		c.set(&nodes[i])
	}
	return nodes, err
}

// TestReadOnlyWhatChanged: after a pull, and after a push, files with the stats of then are not read. Those whose times are
// the latest are: they may change within the tick.
func TestReadOnlyWhatChanged(t *testing.T) {
	b := setup(t, wsync.Options{})
	x := b.pull()
	for _, n := range []string{"a", "b", "young"} {
		x.write(n, "content of "+n)
	}
	times := func(p string) int64 { return map[string]int64{"a": 1e9, "b": 2e9, "young": 9e9}[p] }
	tree := &clocked{Tree: x.tree, times: times}
	x.tree = tree
	x.mustPush()
	if !slices.Equal(tree.read, []string{"a", "b", "young"}) {
		t.Fatalf("first push: read %q, want everything", tree.read)
	}
	for what, y := range map[string]func() (*wsync.Base, *clocked){
		"a push": func() (*wsync.Base, *clocked) { return x.base, tree },
		"a pull": func() (*wsync.Base, *clocked) {
			fresh := &clocked{Tree: folderTree(t, t.TempDir()), times: times}
			base, _, err := b.syncer.Pull(t.Context(), ws, fresh)
			must(t, err)
			return base, fresh
		},
	} {
		base, tree := y()
		tree.read, tree.hashed = nil, nil
		p, err := b.syncer.Push(t.Context(), base, tree, wsync.PushOptions{})
		if err != nil || len(p.Changes) > 0 || !slices.Equal(tree.hashed, []string{"young"}) || len(tree.read) > 0 {
			t.Errorf("after %s: got %v, %v, hashed %q, read %q, want young hashed", what, p, err, tree.hashed, tree.read)
		}
		tree.times = func(p string) int64 { return times(p) + int64(len(p)&1) } // that of a and b alone
		if _, err = b.syncer.Push(t.Context(), base, tree, wsync.PushOptions{}); err != nil || !slices.Equal(tree.hashed, []string{"young", "a", "b", "young"}) {
			t.Errorf("after %s, with other times: got error %v, hashed %q, want all", what, err, tree.hashed)
		}
	}
}

// TestSpecialBits: setuid, setgid and sticky are stored and not restored, and a push from where they were not restored
// keeps them until somebody changes the mode.
func TestSpecialBits(t *testing.T) {
	b := setup(t, wsync.Options{})
	x := b.pull()
	for _, n := range []string{"kept", "edited", "changed"} {
		x.write(n, "one")
		must(t, os.Chmod(x.path(n), 0o750|os.ModeSetuid))
	}
	must(t, os.Mkdir(x.path("dir"), 0o700), os.Chmod(x.path("dir"), 0o770|os.ModeSticky)) //nolint:gosec // modes are what is tested
	x.mustPush()
	y := b.pull()
	for _, n := range []string{"kept", "dir"} {
		if info, err := os.Stat(y.path(n)); err != nil || info.Mode()&(os.ModeSetuid|os.ModeSticky) != 0 {
			t.Errorf("restored %s with mode %v, %v, want no special bits", n, info.Mode(), err)
		}
	}
	must(t, os.WriteFile(y.path("edited"), []byte("two"), 0o600), os.Chmod(y.path("changed"), 0o700)) //nolint:gosec // as above
	if p := y.mustPush(); len(p.Changes) != 2 {
		t.Errorf("got changes %v, want edited and changed", p.Changes)
	}
	head := string(b.store.Object(headKey))
	for path, mode := range map[string]string{"kept": "4750", "edited": "4750", "changed": "0700", "dir": "1770"} {
		entry := head[strings.Index(head, fmt.Sprintf(`"path":%q`, path)):]
		if entry = entry[:strings.Index(entry, "}")]; !strings.Contains(entry, fmt.Sprintf(`"mode":%q`, mode)) {
			t.Errorf("%s: got %s, want mode %s", path, entry, mode)
		}
	}
}

// TestPackOfAwkwardNames: every tar can unpack a pack, whatever its files are called and however long they are.
func TestPackOfAwkwardNames(t *testing.T) {
	b := setup(t, wsync.Options{})
	x := b.pull()
	want := map[string]string{}
	for i, n := range []string{"a", strings.Repeat("n", 100), strings.Repeat("n", 101), strings.Repeat("d/", 60) + "f", "ü", "new\nline", strings.Repeat("ä/", 40) + "z"} {
		want[n] = strings.Repeat("x", []int{1, 511, 512, 513, 1024, 100_000, 3}[i]) + n
		x.write(n, want[n])
	}
	x.mustPush()
	got := map[string]string{}
	for r := tar.NewReader(bytes.NewReader(b.store.Object(b.store.Keys(ws + "/packs/")[0]))); ; {
		h, err := r.Next()
		if errors.Is(err, io.EOF) {
			break
		}
		must(t, err)
		content, err := io.ReadAll(r)
		must(t, err)
		got[h.Name] = string(content)
	}
	if !maps.Equal(got, want) {
		t.Errorf("the tar holds %d files, want %d with their content", len(got), len(want))
	}
	b.wantSame(b.pull(), x)
}

// hooked is a tree that calls before at the beginning of each ReadAll.
type hooked struct {
	wsync.Tree
	before func(round int)
	round  int
}

func (h *hooked) ReadAll(ctx context.Context, paths []string, fn func(wsync.Content) error) error {
	h.before(h.round)
	h.round++
	return h.Tree.ReadAll(ctx, paths, fn)
}

// TestChangedBeforeRead: what happens to a file between the look, the hash and the reading is stored as it is in the end,
// and nothing is stored under a name that is not its checksum.
func TestChangedBeforeRead(t *testing.T) {
	for name, c := range map[string]struct{ first, then string }{
		"shrinks":                       {"0123456789", "012"},
		"becomes empty":                 {"0123456789", ""},
		"grows":                         {"012", "0123456789"},
		"grows out of memory":           {"012", strings.Repeat("x", 5000)},
		"shrinks into memory":           {strings.Repeat("x", 5000), "012"},
		"large, the same size":          {strings.Repeat("x", 5000), "y" + strings.Repeat("x", 4999)},
		"large, of another size":        {strings.Repeat("x", 5000), strings.Repeat("x", 5001)},
		"large, its last byte replaced": {strings.Repeat("x", 5000), strings.Repeat("x", 4999) + "y"},
	} {
		b := setup(t, wsync.Options{PackSize: 1024})
		x := b.pull()
		x.write("f", c.first)
		x.write("other", "x")
		x.tree = &hooked{Tree: x.tree, before: func(round int) {
			if round == 0 {
				x.write("f", c.then)
			}
		}}
		p := x.mustPush()
		if len(p.Skipped)+len(p.Unstable) > 0 {
			t.Errorf("%s: got skipped %q, unstable %q, want neither", name, p.Skipped, p.Unstable)
		}
		if got, err := os.ReadFile(b.pull().path("f")); string(got) != c.then || err != nil {
			t.Errorf("%s: restored %d bytes, %v, want %d", name, len(got), err, len(c.then))
		}
		for _, key := range b.store.Keys(ws + "/blobs/") {
			if sum := fmt.Sprintf("%x", sha256.Sum256(b.store.Object(key))); path.Base(key) != sum {
				t.Errorf("%s: the object %s has the checksum %s", name, key, sum)
			}
		}
	}
}
