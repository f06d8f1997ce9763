//go:build linux || darwin

package wsync_test

import (
	"errors"
	"os"
	"testing"

	wsync "slipway/sync"
)

// TestRevert: what the attempts of one job saved is taken back as a whole, and nothing else.
func TestRevert(t *testing.T) {
	t.Parallel()
	b := setup(t, wsync.Options{})
	writer := func(job string, fence uint64) wsync.Writer { return wsync.Writer{Worker: "w", Job: job, Fence: fence} }
	revert := func(w wsync.Writer, want bool) {
		t.Helper()
		if got, err := b.syncer.Revert(t.Context(), ws, w); err != nil || got != want {
			t.Errorf("Revert for %+v: got %t, %v; want %t", w, got, err, want)
		}
	}
	save := func(w wsync.Writer, content string) {
		t.Helper()
		x := b.pull()
		x.write("f", content)
		if _, err := x.push(wsync.PushOptions{Writer: w}); err != nil {
			t.Fatalf("push: %v", err)
		}
	}
	holds := func(want map[string]string) {
		t.Helper()
		x := b.pull()
		for _, name := range []string{"f"} {
			got, err := x.read(name)
			if content, ok := want[name]; ok != (err == nil) || got != content {
				t.Errorf("%s: got %q, %v; want %q", name, got, err, content)
			}
		}
	}
	revert(writer("a", 1), false) // there is no workspace
	save(writer("a", 1), "a1")
	revert(writer("b", 2), false) // another job's
	revert(writer("a", 2), true)  // back to nothing
	holds(nil)
	revert(writer("a", 3), false)
	save(writer("a", 3), "a3")
	save(writer("b", 4), "b4")
	save(writer("b", 5), "b5")
	revert(writer("b", 6), true)
	holds(map[string]string{"f": "a3"})
	save(writer("b", 6), "b6")
	holds(map[string]string{"f": "b6"})
	if _, err := b.syncer.Revert(t.Context(), ws, writer("b", 5)); err == nil {
		t.Error("an older attempt took back what a newer one saved")
	}
	revert(writer("b", 7), true)
	if _, err := b.syncer.Revert(t.Context(), ws, writer("b", 6)); !errors.Is(err, wsync.ErrConflict) {
		t.Errorf("an older attempt that finds all taken back: got error %v, want %v: it is to end", err, wsync.ErrConflict)
	}
}

func (x *box) read(name string) (string, error) {
	data, err := os.ReadFile(x.path(name))
	return string(data), err
}
