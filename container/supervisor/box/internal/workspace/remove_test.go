//go:build linux

package workspace

import (
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

func TestRemover(t *testing.T) {
	root := t.TempDir()
	fd, err := unix.Open(root, unix.O_RDONLY|unix.O_DIRECTORY, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer unix.Close(fd)
	outside := filepath.Join(t.TempDir(), "outside")
	if err := os.WriteFile(outside, nil, 0o644); err != nil {
		t.Fatal(err)
	}
	for i := range 20 {
		dir := filepath.Join(root, "top", "d"+strconv.Itoa(i), strings.Repeat("e/", i)+"f")
		if err := os.MkdirAll(dir, 0o755); err != nil {
			t.Fatal(err)
		}
		for _, name := range []string{"a", "b", ".slipway-removed-1"} {
			if err := os.WriteFile(filepath.Join(dir, name), nil, 0o444); err != nil {
				t.Fatal(err)
			}
		}
		if err := os.Symlink(outside, filepath.Join(dir, "l")); err != nil {
			t.Fatal(err)
		}
		if err := os.Chmod(dir, 0o500); err != nil {
			t.Fatal(err)
		}
	}
	r := &remover{until: time.Now().Add(time.Minute)}
	if err := r.remove(fd, "top"); err != nil {
		t.Errorf("remove: %v", err)
	}
	if err := r.remove(fd, "top"); err != nil {
		t.Errorf("remove again: %v", err)
	}
	if list, _ := os.ReadDir(root); len(list) != 0 {
		t.Errorf("left: %v", list)
	}
	if _, err := os.Stat(outside); err != nil {
		t.Errorf("a link was followed: %v", err)
	}
	late := &remover{until: time.Now().Add(-time.Second)}
	if err := os.MkdirAll(filepath.Join(root, "x/y"), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := late.remove(fd, "x"); err == nil {
		t.Error("no error although the time was over")
	}
}
