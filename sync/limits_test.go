//go:build linux || darwin

package wsync_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"
	"syscall"
	"testing"

	wsync "slipway/sync"
)

// TestSkipped: pipes and too deep paths are named, and everything else is saved.
func TestSkipped(t *testing.T) {
	b := setup(t, wsync.Options{})
	x := b.pull()
	x.write("f", "x")
	x.write(strings.Repeat("d/", 70)+"f", "x")
	x.write(".sandbox-state", "not ours")
	x.write(".sandbox-state.d/inner", "named once, with its folder")
	must(t, syscall.Mkfifo(x.path("pipe"), 0o600))
	p := x.mustPush()
	if all := strings.Join(p.Skipped, "\n"); len(p.Skipped) != 4 || !strings.Contains(all, "pipe") || !strings.Contains(all, "deeper") || !strings.Contains(all, "reserved") {
		t.Errorf("skipped: got %q, want the pipe, the deep folder and the two reserved names", p.Skipped)
	}
	if got := b.pull().listing(); got["f"] == "" || got["pipe"] != "" {
		t.Errorf("restored %v, want f, and no pipe", got)
	}
}

func TestLimits(t *testing.T) {
	for name, opts := range map[string]wsync.Options{
		"entries": {MaxEntries: 3}, "bytes": {MaxBytes: 100}, "state": {MaxStateBytes: 500},
	} {
		t.Run(name, func(t *testing.T) {
			b := setup(t, opts)
			x := b.pull()
			for i := range 4 {
				x.write(fmt.Sprint("f", i), strings.Repeat("x", 40))
			}
			if _, err := x.push(wsync.PushOptions{}); !errors.Is(err, wsync.ErrTooLarge) {
				t.Errorf("got error %v, want %v", err, wsync.ErrTooLarge)
			}
			if keys := b.store.Keys(ws + "/.sandbox"); len(keys) > 0 {
				t.Errorf("committed %q all the same", keys)
			}
		})
	}
}

// TestLongPaths: what the state alone would hold too much of is refused before anything is read.
func TestLongPaths(t *testing.T) {
	b := setup(t, wsync.Options{MaxStateBytes: 2000})
	x := b.pull()
	for i := range 10 {
		x.write(strings.Repeat("d", 200)+fmt.Sprint("/f", i), "")
	}
	if _, err := x.push(wsync.PushOptions{}); !errors.Is(err, wsync.ErrTooLarge) || !strings.Contains(err.Error(), "paths of") {
		t.Errorf("got error %v, want %v for the paths", err, wsync.ErrTooLarge)
	}
	y := b.pull()
	for i := range 10 {
		must(t, os.Symlink(strings.Repeat("d", 200), y.path(fmt.Sprint("l", i))))
	}
	if _, err := y.push(wsync.PushOptions{}); !errors.Is(err, wsync.ErrTooLarge) || !strings.Contains(err.Error(), "paths of") {
		t.Errorf("links: got error %v, want %v for the targets", err, wsync.ErrTooLarge)
	}
}

func TestBadPrefix(t *testing.T) {
	b := setup(t, wsync.Options{})
	for _, prefix := range []string{"", "/", "a//b", "../x", "a/../b", "a/.", ".hidden", "a b", "a\x00", "ü", "a/b%2e", strings.Repeat("a", 201), strings.Repeat("aaaaaa/", 100) + "a"} {
		if _, err := b.syncer.Open(t.Context(), prefix); err == nil {
			t.Errorf("prefix %q: got no error", prefix)
		}
	}
	for _, prefix := range []string{"a", "a/", "tenants/t1/ws-1", "A_b.c=d@e", strings.Repeat("a", 200), strings.Repeat("aaaaaa/", 99) + "aaaaaaa"} {
		if base, err := b.syncer.Open(t.Context(), prefix); err != nil || !strings.HasSuffix(base.Prefix, "/") {
			t.Errorf("prefix %q: got %v, %v", prefix, base, err)
		}
	}
}

// TestManyPushes: packs are rewritten before they are too many, and the content stays.
func TestManyPushes(t *testing.T) {
	b := setup(t, wsync.Options{})
	x := b.pull()
	for i := range 150 {
		x.write(fmt.Sprint("f", i), strings.Repeat(fmt.Sprint(i), 50))
		x.mustPush()
	}
	var state struct {
		Packs      []struct{ ID string }
		Generation int
		Parent     string
		Parents    []string
	}
	must(t, json.Unmarshal(b.store.Object(ws+"/.sandbox-state"), &state))
	if len(state.Packs) > 65 {
		t.Errorf("got %d packs after 150 pushes, want at most 65", len(state.Packs))
	}
	if state.Generation != 150 || len(state.Parents) != 16 || state.Parents[0] != state.Parent {
		t.Errorf("got generation %d, parents %q, want 150 and 16 of them", state.Generation, state.Parents)
	}
	b.wantSame(b.pull(), x)
}

func TestCanceled(t *testing.T) {
	b := setup(t, wsync.Options{})
	x := b.pull()
	x.write("f", "x")
	ctx, cancel := context.WithCancelCause(t.Context())
	errStop := errors.New("stop")
	cancel(errStop)
	if _, err := b.syncer.Push(ctx, x.base, x.tree, wsync.PushOptions{}); !errors.Is(err, errStop) {
		t.Errorf("push: got error %v, want %v", err, errStop)
	}
	x.mustPush()
	if _, _, err := b.syncer.Pull(ctx, ws, folderTree(t, t.TempDir())); !errors.Is(err, errStop) {
		t.Errorf("pull: got error %v, want %v", err, errStop)
	}
}

// TestPackIsTar: the packs can be read without this program.
func TestPackIsTar(t *testing.T) {
	b := setup(t, wsync.Options{})
	x := b.pull()
	x.write("dir/hello.txt", "hello")
	x.mustPush()
	packs := b.store.Keys(ws + "/packs/")
	if len(packs) != 1 || !bytes.Contains(b.store.Object(packs[0]), []byte("hello")) {
		t.Fatalf("packs: got %q, want one that holds the file", packs)
	}
	names := tarNames(t, b.store.Object(packs[0]))
	if !slices.Equal(names, []string{"dir/hello.txt"}) {
		t.Errorf("tar lists %q", names)
	}
}
