//go:build linux

package workspace

import (
	"errors"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

// An entry that can't be removed does not keep the others, at any depth, and is the error.
func TestEmptyGoesOn(t *testing.T) {
	dir := t.TempDir()
	for _, name := range []string{"a", "b/c", "d", "n/e", "n/m/f", "n/g"} {
		if err := os.MkdirAll(filepath.Join(dir, name), 0o755); err != nil {
			t.Fatal(err)
		}
	}
	for _, name := range []string{"b", "n/m"} {
		busy := filepath.Join(dir, name)
		if err := unix.Mount("tmpfs", busy, "tmpfs", 0, "size=64k"); err != nil {
			t.Skipf("needs to mount a file system: %v", err)
		}
		t.Cleanup(func() { _ = unix.Unmount(busy, unix.MNT_DETACH) })
	}
	within(t, "Empty with mounts", func() {
		if err := emptied(dir, time.Now().Add(time.Minute)); err != unix.EBUSY {
			t.Errorf("Empty with mounts in it: got %v, want %v", err, unix.EBUSY)
		}
	})
	for name, want := range map[string]string{".": "b n", "n": "m"} {
		list, err := os.ReadDir(filepath.Join(dir, name))
		var left []string
		for _, e := range list {
			left = append(left, e.Name())
		}
		if got := strings.Join(left, " "); got != want || err != nil {
			t.Errorf("left in %s: got %q, %v; want only %q", name, got, err, want)
		}
	}
	zero, err := os.Open(os.DevNull)
	if err != nil {
		t.Fatal(err)
	}
	defer zero.Close()
	if err := (&remover{}).empty(int(zero.Fd())); err == nil {
		t.Error("a folder that can't be read: got no error")
	}
	if err := emptied(filepath.Join(dir, "no"), time.Now()); !os.IsNotExist(err) {
		t.Errorf("Empty of nothing: got %v, want not found", err)
	}
}

// What was moved out of a folder that can't be emptied is removed, also if nothing else is and no look follows.
func TestEmptyRemovesWhatItMoved(t *testing.T) {
	dir := t.TempDir()
	busy := filepath.Join(dir, "n", "m")
	for _, name := range []string{"n/e/f", "n/m"} {
		if err := os.MkdirAll(filepath.Join(dir, name), 0o755); err != nil {
			t.Fatal(err)
		}
	}
	if err := unix.Mount("tmpfs", busy, "tmpfs", 0, "size=64k"); err != nil {
		t.Skipf("needs to mount a file system: %v", err)
	}
	t.Cleanup(func() { _ = unix.Unmount(busy, unix.MNT_DETACH) })
	if err := emptied(dir, time.Now().Add(time.Minute)); err != unix.EBUSY {
		t.Errorf("Empty with a mount in it: got %v, want %v", err, unix.EBUSY)
	}
	list, err := os.ReadDir(dir)
	if err != nil || len(list) != 1 || list[0].Name() != "n" {
		t.Errorf("left: got %v, %v; want the folder of the mount only", list, err)
	}
}

// Whoever asks again, as another user, wants to know whether that may help: one entry less is enough.
func TestEmptyProgress(t *testing.T) {
	dir := t.TempDir()
	if err := os.WriteFile(filepath.Join(dir, "f"), nil, 0o644); err != nil {
		t.Fatal(err)
	}
	for _, want := range []bool{true, false} {
		if got, err := Empty(dir, time.Now().Add(time.Minute)); got != want || err != nil {
			t.Errorf("Empty: got progress %t, %v; want %t, no error", got, err, want)
		}
	}
}

// When its time is over Empty begins with no folder, and can't say that nothing is left. An empty folder is left as it is.
func TestEmptyLate(t *testing.T) {
	dir := t.TempDir()
	file, sub := filepath.Join(dir, "f"), filepath.Join(dir, "d")
	if err := errors.Join(os.WriteFile(file, nil, 0o644), os.Mkdir(sub, 0o755)); err != nil {
		t.Fatal(err)
	}
	if err := emptied(dir, time.Now().Add(-time.Second)); err != os.ErrDeadlineExceeded {
		t.Errorf("Empty after its time: got %v, want %v", err, os.ErrDeadlineExceeded)
	}
	if err := os.Remove(sub); err != nil {
		t.Errorf("a folder after that: %v, want it untouched", err)
	}
	if err := os.WriteFile(file, nil, 0o644); err != nil {
		t.Fatal(err)
	}
	if err := emptied(dir, time.Now().Add(-time.Second)); err != os.ErrDeadlineExceeded {
		t.Errorf("Empty of a file after its time: got %v, want %v", err, os.ErrDeadlineExceeded)
	}
	if err := os.Chmod(dir, 0o555); err != nil {
		t.Fatal(err)
	}
	if err := emptied(dir, time.Now().Add(-time.Second)); err != nil {
		t.Errorf("Empty of an empty folder: got %v, want no error", err)
	}
	if info, err := os.Stat(dir); err != nil || info.Mode().Perm() != 0o555 {
		t.Errorf("its mode afterwards: got %v, %v; want it unchanged", info.Mode(), err)
	}
}

// While a process goes on making entries the removal still ends by its time.
func TestEmptyEndsByItsTime(t *testing.T) {
	dir := t.TempDir()
	stop, stopped := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(stopped)
		for i := 0; ; i++ {
			select {
			case <-stop:
				return
			default:
				_ = os.MkdirAll(filepath.Join(dir, strconv.Itoa(i), "x"), 0o755)
			}
		}
	}()
	within(t, "Empty beside a process that makes entries", func() {
		_ = emptied(dir, time.Now().Add(300*time.Millisecond)) // how much it got is chance
	})
	close(stop)
	<-stopped
}
