//go:build linux || darwin

package wsync_test

import (
	"context"
	"io"
	"os"
	"strings"
	"syscall"
	"testing"

	wsync "slipway/sync"
)

// TestUnreadable: a folder that can't be listed keeps what is known of it.
func TestUnreadable(t *testing.T) {
	if os.Geteuid() == 0 {
		t.Log("as root everything can be read: a tree that fails stands in")
	}
	b := setup(t, wsync.Options{})
	x := b.pull()
	x.write("closed/a", "a")
	x.write("closed/sub/b", "b")
	x.write("open/c", "c")
	x.mustPush()
	y := b.pull()
	y.write("open/c", "changed")
	y.remove("closed")
	y.tree = failing{y.tree, "closed"}
	p := y.mustPush()
	if p.Deleted != 0 || len(p.Changes) != 1 || len(p.Skipped) != 1 {
		t.Errorf("got changes %v, skipped %q, want open/c changed and closed skipped", p.Changes, p.Skipped)
	}
	if got := b.pull().listing(); got["closed/a"] == "" || got["closed/sub/b"] == "" {
		t.Errorf("restored %v, want what was in closed", got)
	}
}

// TestReadError: a file whose reading fails half way keeps its old content, however often it is tried.
func TestReadError(t *testing.T) {
	t.Parallel()
	for _, size := range []int{100, 300 << 10, 9 << 20} {
		b := setup(t, wsync.Options{})
		x := b.pull()
		x.write("bad", strings.Repeat("1", size))
		x.write("good", "1")
		x.mustPush()
		y := b.pull()
		y.write("bad", strings.Repeat("2", size+1))
		y.write("good", "2")
		y.tree = broken{y.tree, "bad"}
		p := y.mustPush()
		if len(p.Changes) != 1 || p.Changes[0].Path != "good" || len(p.Skipped) != 1 {
			t.Errorf("%d bytes: got changes %v, skipped %q, want good changed and bad skipped", size, p.Changes, p.Skipped)
		}
		if got, err := os.ReadFile(b.pull().path("bad")); err != nil || string(got) != strings.Repeat("1", size) {
			t.Errorf("%d bytes: restored %d bytes, %v, want the old content", size, len(got), err)
		}
	}
}

// broken is a tree with a file that can be read to its middle only.
type broken struct {
	wsync.Tree
	path string
}

func (b broken) ReadAll(ctx context.Context, paths []string, fn func(wsync.Content) error) error {
	return b.Tree.ReadAll(ctx, paths, func(c wsync.Content) error {
		if c.Node.Path == b.path {
			c.Reader = io.LimitReader(c.Reader, c.Node.Size/2)
			c.After = func() (wsync.Node, error) { return wsync.Node{}, syscall.EIO }
		}
		return fn(c)
	})
}

// failing is a tree with a folder that can't be listed.
type failing struct {
	wsync.Tree
	path string
}

func (f failing) Walk(ctx context.Context, fn func(wsync.Node) error) error {
	if err := fn(wsync.Node{Path: f.path, Type: wsync.TypeDir, Mode: 0o700, Err: os.ErrPermission}); err != nil {
		return err
	}
	return f.Tree.Walk(ctx, fn)
}
