//go:build linux || darwin

package wsync_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"iter"
	"os"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	wsync "slipway/sync"
	"slipway/sync/wsynctest"
)

// recorder is a tree that notes what a Pull hands to it.
type recorder struct {
	wsync.Tree
	made []wsync.NewNode
	read map[string]int64 // bytes of each file that came as a stream
}

func (r *recorder) WriteAll(ctx context.Context, entries iter.Seq2[wsync.NewNode, error]) ([]wsync.Node, error) {
	r.read = map[string]int64{}
	return r.Tree.WriteAll(ctx, func(yield func(wsync.NewNode, error) bool) {
		for n, err := range entries {
			r.made = append(r.made, n)
			if n.Content != nil && n.Data == nil {
				n.Content = &counter{r: n.Content, add: func(k int) { r.read[n.Path] += int64(k) }}
			}
			if !yield(n, err) {
				return
			}
		}
	})
}

type counter struct {
	r   io.Reader
	add func(int)
}

func (c *counter) Read(b []byte) (int, error) {
	n, err := c.r.Read(b)
	c.add(n)
	return n, err
}

// TestPullOrder: folders before what they hold, links after all files, so that no file is written through a link.
func TestPullOrder(t *testing.T) {
	b := setup(t, wsync.Options{})
	x := b.pull()
	x.write("b/c/f", "x")
	x.write("z", strings.Repeat("z", 300<<10))
	x.mixed("one")
	must(t, os.Symlink("b", x.path("a")), os.Symlink("z", x.path("b/l")), os.Mkdir(x.path("void"), 0o700))
	x.mustPush()
	r := &recorder{Tree: folderTree(t, t.TempDir())}
	if _, _, err := b.syncer.Pull(t.Context(), ws, r); err != nil {
		t.Fatal(err)
	}
	rank := map[wsync.NodeType]int{wsync.TypeDir: 0, wsync.TypeFile: 1, wsync.TypeSymlink: 2}
	last, folders := 0, map[string]bool{}
	for _, n := range r.made {
		if rank[n.Type] < last {
			t.Errorf("%s of type %c comes after an entry of a later kind", n.Path, n.Type)
		}
		last = rank[n.Type]
		if i := strings.LastIndexByte(n.Path, '/'); i > 0 && !folders[n.Path[:i]] {
			t.Errorf("%s comes before its folder", n.Path)
		}
		folders[n.Path] = n.Type == wsync.TypeDir
	}
}

// TestCheckedFirst: a state whose last entry breaks a rule makes nothing at all.
func TestCheckedFirst(t *testing.T) {
	b := setup(t, wsync.Options{})
	x := b.pull()
	x.write("a", "x")
	x.write("z", "y")
	x.mustPush()
	head := string(b.store.Object(headKey))
	must(t, b.store.Replace(headKey, []byte(strings.Replace(head, `"path":"z"`, `"path":"../z"`, 1))))
	r := &recorder{Tree: folderTree(t, t.TempDir())}
	if _, _, err := b.syncer.Pull(t.Context(), ws, r); !errors.Is(err, wsync.ErrState) {
		t.Errorf("got error %v, want %v", err, wsync.ErrState)
	}
	if len(r.made) > 0 {
		t.Errorf("made %d entries of a state that breaks a rule", len(r.made))
	}
}

// TestLastBytes: a large blob with one wrong byte never reaches the tree whole.
func TestLastBytes(t *testing.T) {
	b := setup(t, wsync.Options{})
	x := b.pull()
	x.write("large", strings.Repeat("l", 9<<20))
	x.mustPush()
	key := b.store.Keys(ws + "/blobs/")[0]
	content := b.store.Object(key)
	content[0] ^= 1
	must(t, b.store.Replace(key, content))
	r := &recorder{Tree: folderTree(t, t.TempDir())}
	if _, _, err := b.syncer.Pull(t.Context(), ws, r); !errors.Is(err, wsync.ErrCorrupt) {
		t.Errorf("got error %v, want %v", err, wsync.ErrCorrupt)
	}
	if got := r.read["large"]; got == 0 || got >= 9<<20 {
		t.Errorf("got %d bytes given out, want some and not all", got)
	}
}

// TestBodyTries: a body that breaks off every time is asked for four times.
func TestBodyTries(t *testing.T) {
	for _, key := range []string{"/packs/", "/blobs/"} {
		b := setup(t, wsync.Options{})
		x := b.pull()
		x.write(map[string]string{"/packs/": "small", "/blobs/": "large"}[key], strings.Repeat("x", map[string]int{"/packs/": 1000, "/blobs/": 9 << 20}[key]))
		x.mustPush()
		b.store.ResetCounts()
		// Not one byte comes: a stream that moves on has its tries anew.
		b.store.Inject(wsynctest.Fault{Key: key, Times: 100, Cut: 1, Body: func([]byte) []byte { return nil }})
		_, _, err := b.syncer.Pull(t.Context(), ws, folderTree(t, t.TempDir()))
		if !errors.Is(err, wsync.ErrUnavailable) {
			t.Errorf("%s: got error %v, want %v", key, err, wsync.ErrUnavailable)
		}
		calls, _, _ := b.store.Counts()
		if got := calls[wsynctest.OpGet] + calls[wsynctest.OpGetRange] - 1; got != 4 { // one for the head
			t.Errorf("%s: got %d reads, want 4", key, got)
		}
	}
}

// TestCanceledCommit: a push whose context ends while its head is written finds out all the same that it won.
func TestCanceledCommit(t *testing.T) {
	b := setup(t, wsync.Options{})
	x := b.pull()
	x.write("f", "x")
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	b.store.Inject(wsynctest.Fault{Op: wsynctest.OpPut, Key: headKey, Lost: wsynctest.ErrInjected})
	b.store.Inject(wsynctest.Fault{Op: wsynctest.OpGet, Key: headKey, Run: cancel})
	if _, err := b.syncer.Push(ctx, x.base, x.tree, wsync.PushOptions{}); err != nil {
		t.Errorf("got error %v, want the commit that took effect", err)
	}
	b.wantSame(b.pull(), x)
}

// TestCommitTries: a head's write that is never answered and never takes effect is tried five times.
func TestCommitTries(t *testing.T) {
	b := setup(t, wsync.Options{})
	x := b.pull()
	x.write("f", "x")
	tries := 0
	b.store.Inject(wsynctest.Fault{Op: wsynctest.OpPut, Key: headKey, Times: 100, Run: func() { tries++ }, Err: wsynctest.ErrInjected})
	if _, err := x.push(wsync.PushOptions{}); !errors.Is(err, wsync.ErrUnavailable) || tries != 5 {
		t.Errorf("got error %v after %d tries, want %v after 5", err, tries, wsync.ErrUnavailable)
	}
}

// TestPacksInMemory: Options.Parallel packs are in flight, and one more is filled.
func TestPacksInMemory(t *testing.T) {
	dir := t.TempDir()
	synctest.Test(t, func(t *testing.T) {
		store := wsynctest.NewStore()
		syncer := wsync.New(store, wsync.Options{Parallel: 2, PackSize: 1024})
		tree := folderTree(t, dir)
		for i := range 20 {
			must(t, os.WriteFile(fmt.Sprintf("%s/f%02d", dir, i), []byte(strings.Repeat("x", 600)), 0o600))
		}
		base, err := syncer.Open(t.Context(), ws)
		must(t, err)
		var now, most atomic.Int32
		for range 20 {
			store.Inject(wsynctest.Fault{Op: wsynctest.OpPut, Key: "/packs/", Delay: time.Second, Run: func() {
				n := now.Add(1)
				most.Store(max(most.Load(), n))
				time.AfterFunc(time.Second-1, func() { now.Add(-1) }) // just before its place is free
			}})
		}
		if _, err := syncer.Push(t.Context(), base, tree, wsync.PushOptions{}); err != nil {
			t.Fatal(err)
		}
		if got := most.Load(); got != 2 {
			t.Errorf("got %d packs in flight, want 2", got)
		}
	})
}

// TestStateLimit: a head that is larger than Options.MaxStateBytes is refused, and one of exactly that size is not.
func TestStateLimit(t *testing.T) {
	b := setup(t, wsync.Options{})
	x := b.pull()
	x.write("f", "x")
	x.mustPush()
	size := int64(len(b.store.Object(headKey)))
	for limit, fits := range map[int64]bool{size: true, size - 1: false} {
		_, err := wsync.New(b.store, wsync.Options{MaxStateBytes: limit}).Open(t.Context(), ws)
		if fits != (err == nil) || !fits && !errors.Is(err, wsync.ErrState) {
			t.Errorf("limit %d, head of %d: got error %v", limit, size, err)
		}
	}
}
