//go:build unix

package flock

import (
	"errors"
	"os"
	"path/filepath"
	"testing"
)

// TestLock: one open file at a time, until it is closed.
func TestLock(t *testing.T) {
	path := filepath.Join(t.TempDir(), "lock")
	open := func() *os.File {
		f, err := os.OpenFile(path, os.O_CREATE|os.O_RDWR, 0o600)
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { f.Close() })
		return f
	}
	first, second := open(), open()
	if err := Try(first); err != nil {
		t.Fatalf("Try: %v", err)
	}
	if err := Try(second); !errors.Is(err, ErrLocked) {
		t.Errorf("Try of a second file: got %v, want %v", err, ErrLocked)
	}
	waited := make(chan error, 1)
	go func() { waited <- Wait(second) }()
	select {
	case err := <-waited:
		t.Fatalf("Wait returned %v while the first file was locked", err)
	default:
	}
	if err := first.Close(); err != nil {
		t.Fatal(err)
	}
	if err := <-waited; err != nil {
		t.Errorf("Wait: %v", err)
	}
	if err := Try(open()); !errors.Is(err, ErrLocked) {
		t.Errorf("Try after Wait: got %v, want %v", err, ErrLocked)
	}
}
