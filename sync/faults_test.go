//go:build linux || darwin

package wsync_test

import (
	"archive/tar"
	"bytes"
	"context"
	"crypto/rand"
	"errors"
	"io"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	wsync "slipway/sync"
	"slipway/sync/wsynctest"
)

func tarNames(t *testing.T, pack []byte) []string {
	t.Helper()
	var names []string
	for r := tar.NewReader(bytes.NewReader(pack)); ; {
		h, err := r.Next()
		if errors.Is(err, io.EOF) {
			return names
		}
		must(t, err)
		names = append(names, h.Name)
	}
}

const headKey = ws + "/.sandbox-state"

// mixed has a pack, a small blob and a large one.
func (x *box) mixed(tag string) {
	x.Helper()
	random := make([]byte, 9<<20)
	rand.Read(random)
	x.write("small", tag)
	x.write("medium", tag+strings.Repeat("m", 300<<10))
	x.write("large", tag+string(random))
}

// TestEachWriteFails: whatever write fails for good, the old state stays whole, and a second try of the push succeeds.
func TestEachWriteFails(t *testing.T) {
	t.Parallel()
	for _, key := range []string{"/packs/", "/blobs/", "/versions/", headKey} {
		t.Run(key, func(t *testing.T) {
			b := setup(t, wsync.Options{})
			x := b.pull()
			x.mixed("one")
			x.mustPush()
			old := b.pull()
			y := b.pull()
			y.mixed("two")
			errDisk := errors.New("disk full")
			for _, op := range []wsynctest.Op{wsynctest.OpPut, wsynctest.OpPutStream} {
				b.store.Inject(wsynctest.Fault{Op: op, Key: key, Times: 1000, Err: errDisk})
			}
			if _, err := y.push(wsync.PushOptions{}); !errors.Is(err, errDisk) {
				t.Fatalf("push: got error %v, want %v", err, errDisk)
			}
			b.wantSame(b.pull(), old)
			b.store.ClearFaults()
			y.mustPush()
			b.wantSame(b.pull(), y)
		})
	}
}

// TestLostReplies: the write of the version, or of the head, takes effect, and its reply is lost.
func TestLostReplies(t *testing.T) {
	for _, key := range []string{"/versions/", headKey} {
		t.Run(key, func(t *testing.T) {
			b := setup(t, wsync.Options{})
			x := b.pull()
			for _, content := range []string{"create", "swap"} {
				x.write("f", content)
				b.store.Inject(wsynctest.Fault{Op: wsynctest.OpPut, Key: key, Lost: wsynctest.ErrInjected})
				x.mustPush()
			}
			b.wantSame(b.pull(), x)
		})
	}
}

// TestTransient: the head's write fails without an effect; it is sent again.
func TestTransient(t *testing.T) {
	b := setup(t, wsync.Options{})
	x := b.pull()
	x.write("f", "x")
	b.store.Inject(wsynctest.Fault{Op: wsynctest.OpPut, Key: headKey, Times: 2, Err: wsynctest.ErrInjected})
	x.mustPush()
	b.wantSame(b.pull(), x)
}

// TestOvertaken: our commit's reply is lost, and another writer commits on top of it before we read back.
func TestOvertaken(t *testing.T) {
	b := setup(t, wsync.Options{})
	x := b.pull()
	x.write("f", "ours")
	b.store.Inject(wsynctest.Fault{Op: wsynctest.OpPut, Key: headKey, Lost: wsynctest.ErrInjected})
	b.store.Inject(wsynctest.Fault{Op: wsynctest.OpGet, Key: headKey, Run: func() {
		y := b.pull()
		y.write("g", "theirs")
		y.mustPush()
	}})
	x.mustPush()
	x.write("f", "more")
	if _, err := x.push(wsync.PushOptions{}); !errors.Is(err, wsync.ErrConflict) {
		t.Errorf("push after having been overtaken: got error %v, want %v", err, wsync.ErrConflict)
	}
}

// TestReadBackFails: the outcome is unknown, and said to be.
func TestReadBackFails(t *testing.T) {
	b := setup(t, wsync.Options{})
	x := b.pull()
	x.write("f", "x")
	b.store.Inject(wsynctest.Fault{Op: wsynctest.OpPut, Key: headKey, Lost: wsynctest.ErrInjected})
	b.store.Inject(wsynctest.Fault{Op: wsynctest.OpGet, Key: headKey, Err: wsynctest.ErrInjected})
	if _, err := x.push(wsync.PushOptions{}); !errors.Is(err, wsync.ErrUnavailable) || !strings.Contains(err.Error(), "outcome unknown") {
		t.Errorf("got error %v, want %v, outcome unknown", err, wsync.ErrUnavailable)
	}
}

// TestCorrupt: an object that is not what the state says is found, and named.
func TestCorrupt(t *testing.T) {
	t.Parallel()
	flip := func(b []byte) []byte { b[len(b)/2] ^= 1; return b }
	cases := map[string]func(b *bench, key string){
		"flipped":   func(b *bench, key string) { must(b, b.store.Replace(key, flip(b.store.Object(key)))) },
		"truncated": func(b *bench, key string) { o := b.store.Object(key); must(b, b.store.Replace(key, o[:len(o)-1000])) },
		"empty":     func(b *bench, key string) { must(b, b.store.Replace(key, nil)) },
		"missing":   func(b *bench, key string) { must(b, b.store.Delete(b.Context(), key)) },
	}
	for name, harm := range cases {
		t.Run(name, func(t *testing.T) {
			b := setup(t, wsync.Options{})
			x := b.pull()
			x.mixed("one")
			x.mustPush()
			objects := append(b.store.Keys(ws+"/packs/"), b.store.Keys(ws+"/blobs/")...)
			if len(objects) != 3 {
				t.Fatalf("objects: got %q, want three", objects)
			}
			for _, key := range objects {
				good := b.store.Object(key)
				harm(b, key)
				_, _, err := b.syncer.Pull(t.Context(), ws, folderTree(t, t.TempDir()))
				if !errors.Is(err, wsync.ErrCorrupt) || !strings.Contains(err.Error(), key) || (name == "missing") != strings.Contains(err.Error(), "it is missing") {
					t.Errorf("%s: got error %v, want %v naming it", key, err, wsync.ErrCorrupt)
				}
				_, err = b.store.Put(t.Context(), key, bytes.NewReader(good), int64(len(good)), wsync.PutOptions{})
				must(t, err)
			}
		})
	}
}

// TestBodiesBreakOff: connections end in the middle of bodies; the pull goes on where it stopped.
func TestBodiesBreakOff(t *testing.T) {
	b := setup(t, wsync.Options{})
	x := b.pull()
	x.mixed("one")
	x.mustPush()
	for _, key := range []string{"/packs/", "/blobs/"} {
		b.store.Inject(wsynctest.Fault{Key: key, Op: wsynctest.OpGet, Cut: 1000})
		b.store.Inject(wsynctest.Fault{Key: key, Op: wsynctest.OpGetRange, Cut: 5 << 20})
	}
	b.wantSame(b.pull(), x)
}

// changing is a tree in which files change while they are read.
type changing struct {
	wsync.Tree
	dir   *box
	times map[string]int
}

func (c *changing) ReadAll(ctx context.Context, paths []string, fn func(wsync.Content) error) error {
	return c.Tree.ReadAll(ctx, paths, func(x wsync.Content) error {
		if c.times[x.Node.Path] > 0 {
			c.times[x.Node.Path]--
			f, err := os.OpenFile(c.dir.path(x.Node.Path), os.O_WRONLY|os.O_APPEND, 0)
			must(c.dir, err)
			_, err = f.WriteString("more")
			must(c.dir, err, f.Close())
		}
		return fn(x)
	})
}

// TestUnstable: a file that settles is stored as it is then; one that never does is stored as it was read, and named.
func TestUnstable(t *testing.T) {
	t.Parallel()
	for _, size := range []int{10, 300 << 10, 9 << 20} {
		b := setup(t, wsync.Options{})
		x := b.pull()
		x.write("settles", strings.Repeat("s", size))
		x.write("never", strings.Repeat("n", size+1))
		x.write("calm", "c")
		x.tree = &changing{Tree: x.tree, dir: x, times: map[string]int{"settles": 1, "never": 100}}
		p := x.mustPush()
		if size > 8<<20 { // too large to be sent again: stored as it was hashed
			if !slices.Equal(p.Unstable, []string{"never", "settles"}) {
				t.Errorf("%d bytes: unstable: got %q, want both", size, p.Unstable)
			}
			continue
		}
		if !slices.Equal(p.Unstable, []string{"never"}) {
			t.Errorf("%d bytes: unstable: got %q, want never", size, p.Unstable)
		}
		y := b.pull()
		if got, err := os.ReadFile(y.path("settles")); err != nil || len(got) != size+4 {
			t.Errorf("%d bytes: settles has %d bytes, %v, want %d", size, len(got), err, size+4)
		}
		x.tree = folderTree(t, x.dir)
		if p := x.mustPush(); len(p.Changes) != 1 {
			t.Errorf("%d bytes: the next push changed %v, want never only", size, p.Changes)
		}
		b.wantSame(b.pull(), x)
	}
}

// TestNeverMissed: same size, same times, renamed over or rewritten at once after the pull: every change is seen.
func TestNeverMissed(t *testing.T) {
	b := setup(t, wsync.Options{})
	x := b.pull()
	x.write("f", "content 0")
	x.write("other", "x")
	x.mustPush()
	last := "content 0"
	for i := range 60 {
		y := b.pull()
		info, err := os.Stat(y.path("f"))
		must(t, err)
		content := "content 0"[:8] + string(rune('0'+(i+1)%10))
		switch i % 4 {
		case 0:
			must(t, os.WriteFile(y.path("f"), []byte(content), 0o600))
		case 1:
			must(t, os.WriteFile(y.path("tmp"), []byte(content), 0o644), os.Rename(y.path("tmp"), y.path("f"))) //nolint:gosec // the old mode
		case 2:
			must(t, os.WriteFile(y.path("f"), []byte(content), 0o600), os.Chtimes(y.path("f"), time.Now(), info.ModTime()))
		case 3:
			must(t, os.WriteFile(y.path("tmp"), []byte(content), 0o644), os.Chtimes(y.path("tmp"), time.Now(), info.ModTime()), os.Rename(y.path("tmp"), y.path("f"))) //nolint:gosec // the old mode
		}
		if p := y.mustPush(); len(p.Changes) != 1 || content == last {
			t.Fatalf("change %d: got %v, want f", i, p.Changes)
		}
		last = content
		// Again at once, on the base that the push moved on.
		content = content[:7] + "x" + content[8:]
		must(t, os.WriteFile(y.path("f"), []byte(content), 0o600))
		if p := y.mustPush(); len(p.Changes) != 1 {
			t.Fatalf("second change %d: got %v, want f", i, p.Changes)
		}
		must(t, os.WriteFile(y.path("f"), []byte(last), 0o600))
		y.mustPush()
	}
}
