//go:build linux || darwin

package wsync_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"iter"
	"os"
	"regexp"
	"strings"
	"testing"

	wsync "slipway/sync"
	"slipway/sync/wsynctest"
)

// partlyDead is a workspace whose only pack holds ten files of 100 KiB, of which the first two and the last two are still
// part of it.
func partlyDead(t *testing.T) (b *bench, pack string) {
	t.Helper()
	b = setup(t, wsync.Options{})
	x := b.pull()
	for i := range 10 {
		x.write(fmt.Sprint("f", i), strings.Repeat(fmt.Sprint(i), 100<<10))
	}
	x.mustPush()
	for i := 2; i < 8; i++ {
		x.remove(fmt.Sprint("f", i))
	}
	x.mustPush()
	packs := b.store.Keys(ws + "/packs/")
	if len(packs) != 1 {
		t.Fatalf("packs: got %q, want one", packs)
	}
	return b, packs[0]
}

// TestPartOfAPack: of a pack that is mostly dead only the living ranges are fetched, and each of their files is verified:
// the checksum of the pack says nothing about a part of it.
func TestPartOfAPack(t *testing.T) {
	for name, c := range map[string]struct {
		harm func(pack []byte) []byte
		want string // part of the error; empty: the harm is to what nobody reads
	}{
		"none":               {func(b []byte) []byte { return b }, ""},
		"a dead file":        {func(b []byte) []byte { b[bytes.Index(b, []byte("5555"))] ^= 1; return b }, ""},
		"its first file":     {func(b []byte) []byte { b[bytes.Index(b, []byte("0000"+"0000"+"0000"+"0000"))] ^= 1; return b }, `the checksum of "f0" differs`},
		"a file of a range":  {func(b []byte) []byte { b[bytes.LastIndex(b, []byte("8888"))] ^= 1; return b }, `the checksum of "f8" differs`},
		"its last file":      {func(b []byte) []byte { b[bytes.LastIndex(b, []byte("9"))] ^= 1; return b }, `the checksum of "f9" differs`},
		"an end cut off":     {func(b []byte) []byte { return b[:len(b)-50<<10] }, "ends"},
		"cut before a range": {func(b []byte) []byte { return b[:300<<10] }, "ends"},
	} {
		b, pack := partlyDead(t)
		must(t, b.store.Replace(pack, c.harm(b.store.Object(pack))))
		b.store.ResetCounts()
		dir := t.TempDir()
		_, _, err := b.syncer.Pull(t.Context(), ws, folderTree(t, dir))
		if c.want == "" {
			calls, _, read := b.store.Counts()
			if err != nil || calls[wsynctest.OpGetRange] != 2 || read > 500<<10 {
				t.Errorf("%s: got error %v, %d ranges and %d bytes, want two ranges of 200 KiB", name, err, calls[wsynctest.OpGetRange], read)
			}
			for _, i := range []int{0, 1, 8, 9} {
				if got, err := os.ReadFile(fmt.Sprintf("%s/f%d", dir, i)); string(got) != strings.Repeat(fmt.Sprint(i), 100<<10) {
					t.Errorf("%s: f%d has %d bytes that differ, %v", name, i, len(got), err)
				}
			}
			continue
		}
		if !errors.Is(err, wsync.ErrCorrupt) || !strings.Contains(err.Error(), pack) || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: got error %v, want %v that names the pack and %s", name, err, wsync.ErrCorrupt, c.want)
		}
	}
}

// TestOlderChecksums: a state that gives no SHA-256 of its packs, or none at all, is verified by what it gives.
func TestOlderChecksums(t *testing.T) {
	t.Parallel()
	ofPacks := regexp.MustCompile(`("size":\d+),"sha256":"[0-9a-f]{64}"(,"enc":"none")`)
	ofAll := regexp.MustCompile(`,?"sha256":"[0-9a-f]{64}"`)
	for name, without := range map[string]func(head []byte) []byte{
		"of packs": func(head []byte) []byte { return ofPacks.ReplaceAll(head, []byte("$1$2")) },
		"of all":   func(head []byte) []byte { return ofAll.ReplaceAll(head, nil) },
	} {
		b := setup(t, wsync.Options{})
		x := b.pull()
		x.mixed("one")
		x.mustPush()
		head := without(b.store.Object(headKey))
		if bytes.Equal(head, b.store.Object(headKey)) {
			t.Fatalf("%s: the head is as it was: %.300s", name, head)
		}
		must(t, b.store.Replace(headKey, head))
		b.wantSame(b.pull(), x)
		for _, key := range append(b.store.Keys(ws+"/packs/"), b.store.Keys(ws+"/blobs/")...) {
			good := b.store.Object(key)
			bad := bytes.Replace(good, []byte("one"), []byte("two"), 1+strings.Count(key, "/packs/")) // the content, not the header
			must(t, b.store.Replace(key, bad))
			if _, _, err := b.syncer.Pull(t.Context(), ws, folderTree(t, t.TempDir())); !errors.Is(err, wsync.ErrCorrupt) || !strings.Contains(err.Error(), key) || !strings.Contains(err.Error(), "the checksum of") {
				t.Errorf("%s, %s: got error %v, want %v for a file's checksum", name, key, err, wsync.ErrCorrupt)
			}
			must(t, b.store.Replace(key, good))
		}
	}
}

// TestLongerObject: an object that goes on after what the state says is not what the state means.
func TestLongerObject(t *testing.T) {
	b := setup(t, wsync.Options{})
	x := b.pull()
	x.write("small", "x")
	x.write("medium", strings.Repeat("m", 300<<10))
	x.mustPush()
	for _, key := range append(b.store.Keys(ws+"/packs/"), b.store.Keys(ws+"/blobs/")...) {
		good := b.store.Object(key)
		must(t, b.store.Replace(key, append(good, 0)))
		if _, _, err := b.syncer.Pull(t.Context(), ws, folderTree(t, t.TempDir())); !errors.Is(err, wsync.ErrCorrupt) || !strings.Contains(err.Error(), "longer than") {
			t.Errorf("%s: got error %v, want %v: it is longer", key, err, wsync.ErrCorrupt)
		}
		must(t, b.store.Replace(key, good))
	}
}

// careless is a tree that does not do what WriteAll promises.
type careless struct {
	wsync.Tree
	spoil func([]wsync.Node, error) ([]wsync.Node, error)
}

func (c careless) WriteAll(ctx context.Context, entries iter.Seq2[wsync.NewNode, error]) ([]wsync.Node, error) {
	return c.spoil(c.Tree.WriteAll(ctx, entries))
}

// TestCarelessTree: a Pull notices what a tree did not make, and knows the cause of its own end though a tree loses it.
func TestCarelessTree(t *testing.T) {
	t.Parallel()
	b := setup(t, wsync.Options{})
	x := b.pull()
	x.write("a", "one")
	x.write("b", "two")
	x.write("large", strings.Repeat("l", 9<<20))
	x.mustPush()
	errPipe := errors.New("broken pipe")
	pull := func(spoil func([]wsync.Node, error) ([]wsync.Node, error)) error {
		_, _, err := b.syncer.Pull(t.Context(), ws, careless{folderTree(t, t.TempDir()), spoil})
		return err
	}
	for want, spoil := range map[string]func([]wsync.Node, error) ([]wsync.Node, error){
		"the tree made 2 entries of 3":         func(n []wsync.Node, err error) ([]wsync.Node, error) { return n[:2], err },
		`the tree holds 2 bytes of "a", not 3`: func(n []wsync.Node, err error) ([]wsync.Node, error) { n[0].Size = 2; return n, err },
		"broken pipe":                          func([]wsync.Node, error) ([]wsync.Node, error) { return nil, errPipe },
	} {
		if err := pull(spoil); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("got error %v, want %s", err, want)
		}
	}
	for _, prefix := range []string{"/packs/", "/blobs/"} {
		key := b.store.Keys(ws + prefix)[0]
		good := b.store.Object(key)
		must(t, b.store.Replace(key, append([]byte{good[0] ^ 1}, good[1:]...)))
		err := pull(func([]wsync.Node, error) ([]wsync.Node, error) { return nil, errPipe })
		if !errors.Is(err, wsync.ErrCorrupt) {
			t.Errorf("%s: got error %v, want %v, not what the tree made of it", prefix, err, wsync.ErrCorrupt)
		}
		must(t, b.store.Replace(key, good))
	}
}
