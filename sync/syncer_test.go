//go:build linux || darwin

package wsync_test

import (
	"crypto/rand"
	"errors"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	wsync "slipway/sync"
	"slipway/sync/folder"
	"slipway/sync/wsynctest"
)

func folderTree(t testing.TB, dir string) wsync.Tree {
	t.Helper()
	tree, err := folder.New(dir)
	if err != nil {
		t.Fatal(err)
	}
	return tree
}

func must(t testing.TB, errs ...error) {
	t.Helper()
	if err := errors.Join(errs...); err != nil {
		t.Fatal(err)
	}
}

const ws = "team/ws"

// bench is a store and a syncer on it.
type bench struct {
	*testing.T
	store  *wsynctest.Store
	syncer *wsync.Syncer
}

func setup(t *testing.T, opts wsync.Options) *bench {
	t.Helper()
	store := wsynctest.NewStore()
	return &bench{T: t, store: store, syncer: wsync.New(store, opts)}
}

// box is a folder that a workspace was restored into.
type box struct {
	*bench
	dir  string
	tree wsync.Tree
	base *wsync.Base
}

// pull restores the workspace into a new folder.
func (b *bench) pull() *box {
	b.Helper()
	x := &box{bench: b, dir: b.TempDir()}
	x.tree = folderTree(b, x.dir)
	var err error
	if x.base, _, err = b.syncer.Pull(b.Context(), ws, x.tree); err != nil {
		b.Fatalf("pull: %v", err)
	}
	return x
}

func (x *box) push(opts wsync.PushOptions) (wsync.Pushed, error) {
	return x.syncer.Push(x.Context(), x.base, x.tree, opts)
}

func (x *box) mustPush() wsync.Pushed {
	x.Helper()
	p, err := x.push(wsync.PushOptions{})
	if err != nil {
		x.Fatalf("push: %v", err)
	}
	return p
}

func (x *box) path(name string) string { return filepath.Join(x.dir, filepath.FromSlash(name)) }

func (x *box) write(name, content string) {
	x.Helper()
	must(x, os.MkdirAll(filepath.Dir(x.path(name)), 0o755), os.WriteFile(x.path(name), []byte(content), 0o644)) //nolint:gosec // ordinary modes
}

func (x *box) remove(names ...string) {
	x.Helper()
	for _, n := range names {
		must(x, os.RemoveAll(x.path(n)))
	}
}

func (x *box) listing() map[string]string {
	x.Helper()
	l, err := wsynctest.Listing(x.Context(), x.tree)
	if err != nil {
		x.Fatal(err)
	}
	return l
}

func (b *bench) wantSame(got, want *box) {
	b.Helper()
	if d := cmp.Diff(want.listing(), got.listing()); d != "" {
		b.Errorf("restored tree differs (- want, + got):\n%s", d)
	}
}

// writes counts the calls that change the store.
func (b *bench) writes() int {
	calls, _, _ := b.store.Counts()
	return calls[wsynctest.OpPut] + calls[wsynctest.OpPutStream] + calls[wsynctest.OpDelete]
}

// awkward fills a folder with what other tools lose.
func awkward(x *box) {
	for _, name := range []string{
		"plain", " leading and trailing ", "new\nline", "tab\tand\\back", "ctl\x01", "quote\"'`$(x)", "-rf", "ümlaut", "not-utf8-\xff\xfe",
		"e\u0301", "\u00e9", "CASE", "case", "a", "a-b", "a.b", "x/y/z", "x/y.z", "name.rclonelink", "dir.tar/inner",
		strings.Repeat("n", 255), strings.Repeat(strings.Repeat("p", 200)+"/", 15) + "deep",
	} {
		x.write(name, "content of "+name)
	}
	x.write("empty file", "")
	x.write("exactly", strings.Repeat("x", 256<<10))
	x.write("below", strings.Repeat("x", 256<<10-1))
	big := make([]byte, 9<<20)
	rand.Read(big)
	x.write("big", string(big))
	must(x, os.MkdirAll(x.path("void/inner"), 0o755), os.Mkdir(x.path("private"), 0o700), os.WriteFile(x.path("private/key"), []byte("k"), 0o600),
		os.Mkdir(x.path("readonly"), 0o755), os.WriteFile(x.path("readonly/f"), []byte("f"), 0o444), os.Chmod(x.path("readonly"), 0o555), //nolint:gosec // modes are what is tested
		os.WriteFile(x.path("tool"), []byte("#!/bin/sh\n"), 0o755), //nolint:gosec // as above
		os.Symlink("plain", x.path("link")), os.Symlink("/etc/passwd", x.path("absolute")), os.Symlink("nowhere\xff", x.path("dangling")),
		os.Symlink("..", x.path("x/up")), os.Symlink("link", x.path("link2")))
	x.Cleanup(func() { os.Chmod(x.path("readonly"), 0o755) }) //nolint:errcheck,gosec // for the removal
}

func TestRoundTrip(t *testing.T) {
	b := setup(t, wsync.Options{})
	first := b.pull()
	awkward(first)
	pushed := first.mustPush()
	if len(pushed.Skipped)+len(pushed.Unstable) > 0 {
		t.Errorf("skipped %q, unstable %q, want none", pushed.Skipped, pushed.Unstable)
	}
	second := b.pull()
	t.Cleanup(func() { os.Chmod(second.path("readonly"), 0o755) }) //nolint:errcheck,gosec // for the removal
	b.wantSame(second, first)
	if second.base.Commit != pushed.Commit {
		t.Errorf("pulled commit %s, want %s", second.base.Commit, pushed.Commit)
	}
	b.store.ResetCounts()
	if p := second.mustPush(); p.Commit != pushed.Commit || len(p.Changes) > 0 {
		t.Errorf("push without a change: got %+v", p)
	}
	if calls, _, _ := b.store.Counts(); len(calls) > 0 {
		t.Errorf("push without a change: got calls %v, want none", calls)
	}
}

func TestChanges(t *testing.T) {
	b := setup(t, wsync.Options{})
	x := b.pull()
	for _, n := range []string{"keep", "edit", "chmod", "gone", "file-to-dir", "dir-to-file/in", "to-link", "d/1", "d/2"} {
		x.write(n, "one "+n)
	}
	must(t, os.Symlink("keep", x.path("retarget")))
	x.mustPush()
	y := b.pull()
	y.remove("gone", "file-to-dir", "dir-to-file", "to-link", "retarget", "d")
	y.write("edit", "two edit")
	y.write("file-to-dir/in", "now a folder")
	y.write("dir-to-file", "now a file")
	y.write("new/file", "new")
	must(t, os.Chmod(y.path("chmod"), 0o755), os.Symlink("keep", y.path("to-link")), os.Symlink("edit", y.path("retarget")), //nolint:gosec // modes are what is tested
		os.Mkdir(y.path("d"), 0o755))
	p := y.mustPush()
	got := map[string]wsync.ChangeKind{}
	for _, c := range p.Changes {
		got[c.Path] = c.Kind
	}
	want := map[string]wsync.ChangeKind{
		"edit": wsync.Modified, "chmod": wsync.Modified, "gone": wsync.Deleted, "file-to-dir": wsync.Deleted, "file-to-dir/in": wsync.Added,
		"dir-to-file/in": wsync.Deleted, "dir-to-file": wsync.Added, "to-link": wsync.Modified, "retarget": wsync.Modified,
		"d": wsync.Added, "d/1": wsync.Deleted, "d/2": wsync.Deleted, "new/file": wsync.Added,
	}
	if d := cmp.Diff(want, got); d != "" {
		t.Errorf("changes (- want, + got):\n%s", d)
	}
	if p.Deleted != 5 {
		t.Errorf("deleted: got %d, want 5", p.Deleted)
	}
	b.wantSame(b.pull(), y)
}

// TestTouch: a new time, or a chmod there and back, uploads nothing.
func TestTouch(t *testing.T) {
	b := setup(t, wsync.Options{})
	x := b.pull()
	x.write("f", "same")
	x.mustPush()
	x.write("f", "same")
	b.store.ResetCounts()
	if p := x.mustPush(); len(p.Changes) > 0 || b.writes() > 0 {
		t.Errorf("got changes %v and %d writes, want none", p.Changes, b.writes())
	}
}

// TestOnePercent: 1% of the files changed, and hardly more than 1% of the bytes move.
func TestOnePercent(t *testing.T) {
	t.Parallel()
	b := setup(t, wsync.Options{})
	x := b.pull()
	const n = 1000
	for i := range n {
		x.write(fmt.Sprintf("d%d/f%d", i/50, i), strings.Repeat(fmt.Sprint(i, " "), 500))
	}
	x.mustPush()
	y := b.pull()
	for i := 0; i < n; i += 100 {
		y.write(fmt.Sprintf("d%d/f%d", i/50, i), strings.Repeat(fmt.Sprint(i, "!"), 500))
	}
	_, before, _ := b.store.Counts()
	p := y.mustPush()
	_, after, _ := b.store.Counts()
	state := int64(len(b.store.Object(ws + "/.sandbox-state")))
	if moved := after - before - 2*state; len(p.Changes) != n/100 || p.Files != n/100 || moved > before/50 {
		t.Errorf("got %d changes, %d files, %d bytes of %d, want 10, 10, about 1%%", len(p.Changes), p.Files, moved, before)
	}
	b.wantSame(b.pull(), y)
}

func TestConflict(t *testing.T) {
	b := setup(t, wsync.Options{})
	start := b.pull()
	start.write("f", "start")
	start.mustPush()
	one, two := b.pull(), b.pull()
	one.write("f", "one")
	two.write("f", "two")
	winner := one.mustPush()
	_, err := two.push(wsync.PushOptions{Writer: wsync.Writer{Job: "j2"}})
	conflict, ok := errors.AsType[*wsync.Conflict](err)
	if !ok || !errors.Is(err, wsync.ErrConflict) {
		t.Fatalf("second push: got error %v, want a Conflict", err)
	}
	if conflict.Head != winner.Commit || conflict.Base != start.base.Commit || conflict.Commit == "" {
		t.Errorf("got %+v, want head %s and base %s", conflict, winner.Commit, start.base.Commit)
	}
	if b.store.Object(conflict.Version) == nil {
		t.Errorf("the loser's version %q was not kept", conflict.Version)
	}
	b.wantSame(b.pull(), one)
}

// TestFirstPushRace: two first pushes of a workspace, one wins.
func TestFirstPushRace(t *testing.T) {
	b := setup(t, wsync.Options{})
	one, two := b.pull(), b.pull()
	one.write("f", "one")
	two.write("f", "two")
	one.mustPush()
	if _, err := two.push(wsync.PushOptions{}); !errors.Is(err, wsync.ErrConflict) {
		t.Errorf("got error %v, want %v", err, wsync.ErrConflict)
	}
}

func TestFence(t *testing.T) {
	b := setup(t, wsync.Options{})
	x := b.pull()
	x.write("f", "new attempt")
	if _, err := x.push(wsync.PushOptions{Writer: wsync.Writer{Job: "j", Fence: 9}}); err != nil {
		t.Fatal(err)
	}
	zombie := b.pull()
	zombie.write("f", "old attempt")
	b.store.ResetCounts()
	_, err := zombie.push(wsync.PushOptions{Writer: wsync.Writer{Job: "j", Fence: 8}})
	if !errors.Is(err, wsync.ErrConflict) || b.writes() > 0 {
		t.Errorf("lower fence: got error %v and %d writes, want %v and none", err, b.writes(), wsync.ErrConflict)
	}
	if _, err = zombie.push(wsync.PushOptions{Writer: wsync.Writer{Job: "other", Fence: 1}}); err != nil {
		t.Errorf("another job's fence: got error %v, want none", err)
	}
}

func TestMassDelete(t *testing.T) {
	b := setup(t, wsync.Options{})
	x := b.pull()
	for i := range 300 {
		x.write(fmt.Sprintf("d%d/f", i), "x")
	}
	x.mustPush()
	y := b.pull()
	for i := range 200 {
		y.remove(fmt.Sprintf("d%d", i))
	}
	if _, err := y.push(wsync.PushOptions{}); !errors.Is(err, wsync.ErrMassDelete) {
		t.Errorf("200 of 300: got error %v, want %v", err, wsync.ErrMassDelete)
	}
	if p, err := y.push(wsync.PushOptions{AllowMassDelete: true}); err != nil || p.Deleted != 200 {
		t.Errorf("allowed: got %d deleted, %v, want 200", p.Deleted, err)
	}
	z := b.pull()
	z.remove(slices.Collect(maps.Keys(z.listing()))...)
	if _, err := z.push(wsync.PushOptions{}); !errors.Is(err, wsync.ErrMassDelete) {
		t.Errorf("empty root: got error %v, want %v", err, wsync.ErrMassDelete)
	}
}
