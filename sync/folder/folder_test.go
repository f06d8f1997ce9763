//go:build linux || darwin

package folder_test

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	wsync "slipway/sync"
	"slipway/sync/folder"
	"slipway/sync/wsynctest"
)

func TestFolderSuite(t *testing.T) {
	wsynctest.RunTree(t, func(t *testing.T) wsync.Tree { return folderTree(t, t.TempDir()) })
}

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

// TestFolderPipe: a pipe without a writer must not be waited for.
func TestFolderPipe(t *testing.T) {
	dir := t.TempDir()
	must(t, syscall.Mkfifo(filepath.Join(dir, "pipe"), 0o600))
	tree := folderTree(t, dir)
	done := make(chan error, 1)
	go func() {
		done <- tree.ReadAll(t.Context(), []string{"pipe"}, func(c wsync.Content) error { return c.Err })
	}()
	select {
	case err := <-done:
		if err == nil {
			t.Error("read of a pipe: got no error")
		}
	case <-time.After(5 * time.Second):
		t.Fatal("read of a pipe hangs")
	}
}

// TestFolderHardLink: replacing one name leaves the other's content alone.
func TestFolderHardLink(t *testing.T) {
	dir := t.TempDir()
	a, b := filepath.Join(dir, "a"), filepath.Join(dir, "b")
	must(t, os.WriteFile(a, []byte("shared"), 0o600), os.Link(a, b))
	if _, err := folderTree(t, dir).WriteAll(t.Context(), wsynctest.Entries(wsynctest.File("a", "new"))); err != nil {
		t.Fatal(err)
	}
	if got, err := os.ReadFile(b); string(got) != "shared" || err != nil {
		t.Errorf("the other name: got %q, %v, want it unchanged", got, err)
	}
}

// TestFolderRace: an attacker swaps a file and a folder against links to a secret outside, while they are
// read and written. Nothing of it may come in, and nothing may get out.
func TestFolderRace(t *testing.T) {
	dir, outside := t.TempDir(), t.TempDir()
	must(t, os.WriteFile(filepath.Join(outside, "f"), []byte("secret"), 0o600), os.Mkdir(filepath.Join(dir, "d"), 0o700),
		os.WriteFile(filepath.Join(dir, "d", "f"), []byte("public"), 0o600), os.Symlink(outside, filepath.Join(dir, "link")))
	stop, stopped := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(stopped)
		d, l, x := filepath.Join(dir, "d"), filepath.Join(dir, "link"), filepath.Join(dir, "x")
		for {
			select {
			case <-stop:
				return
			default:
			}
			os.Rename(d, x) //nolint:errcheck // a race
			os.Rename(l, d) //nolint:errcheck // a race
			os.Rename(d, l) //nolint:errcheck // a race
			os.Rename(x, d) //nolint:errcheck // a race
		}
	}()
	tree := folderTree(t, dir)
	length := time.Second
	if testing.Short() {
		length = 100 * time.Millisecond
	}
	reads := 0
	for end := time.Now().Add(length); time.Now().Before(end); {
		err := tree.ReadAll(t.Context(), []string{"d/f"}, func(c wsync.Content) error {
			if c.Err != nil {
				return nil
			}
			b := make([]byte, 16)
			n, _ := c.Reader.Read(b)
			if reads++; string(b[:n]) == "secret" {
				t.Error("read the secret")
			}
			return nil
		})
		if err != nil {
			t.Fatal(err)
		}
		tree.WriteAll(t.Context(), wsynctest.Entries(wsynctest.File("d/planted", "x"))) //nolint:errcheck // it may well fail
	}
	close(stop)
	<-stopped
	if _, err := os.Lstat(filepath.Join(outside, "planted")); err == nil {
		t.Error("wrote outside")
	}
	t.Logf("%d reads", reads)
}

// TestFolderDeep: what is too deep is seen once and not entered.
func TestFolderDeep(t *testing.T) {
	tree := wsynctest.NewFolder(t, map[string]string{strings.Repeat("d/", 70) + "f": "x"})
	deepest := 0
	must(t, tree.Walk(t.Context(), func(n wsync.Node) error { deepest = max(deepest, strings.Count(n.Path, "/")+1); return nil }))
	if deepest != 65 {
		t.Errorf("deepest: got %d, want 65, one more than a state holds", deepest)
	}
}
