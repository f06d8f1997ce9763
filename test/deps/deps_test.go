package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// TestBounds: a bound is kept up to its value, and what passes it is named.
func TestBounds(t *testing.T) {
	if err := within("x", 55, 55); err != nil {
		t.Errorf("at the bound: got error %v", err)
	}
	if err := within("worker: modules", 56, 55); err == nil || !strings.Contains(err.Error(), "worker: modules: 56") || !strings.Contains(err.Error(), "55") {
		t.Errorf("over the bound: got error %v, want one with what, how many and the bound", err)
	}
}

// TestDirect: what a go.mod requires for its own imports, and not what that needs.
func TestDirect(t *testing.T) {
	dir := t.TempDir()
	text := "module m\n\ngo 1.26\n\nrequire example.com/a v1.0.0\n\nrequire (\n\texample.com/b v1.0.0 // indirect\n)\n"
	if err := os.WriteFile(filepath.Join(dir, "go.mod"), []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	got, err := directModules(dir)
	if err != nil || !got["example.com/a"] || got["example.com/b"] {
		t.Errorf("got %v, %v, want example.com/a alone", got, err)
	}
	if lines, err := countLines(filepath.Join(dir, "go.mod")); err != nil || lines != 9 {
		t.Errorf("lines: got %d, %v, want 9", lines, err)
	}
}

// TestNotBuilt: without the programs there is no report that says that all is well.
func TestNotBuilt(t *testing.T) {
	err := programs[0].report(os.Stderr, t.TempDir())
	if err == nil || !strings.Contains(err.Error(), "make build") {
		t.Errorf("got error %v, want one that says to build first", err)
	}
}
