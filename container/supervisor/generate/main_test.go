package main

import (
	"bytes"
	"os"
	"path/filepath"
	"testing"
)

func TestPackIsDeterministic(t *testing.T) {
	data := bytes.Repeat([]byte("supervisor"), 10000)
	a, err := pack(data)
	if err != nil {
		t.Fatal(err)
	}
	b, err := pack(data)
	if err != nil || !bytes.Equal(a, b) {
		t.Errorf("packed twice = %d and %d bytes, %v, want the same", len(a), len(b), err)
	}
	name := filepath.Join(t.TempDir(), "x.gz")
	if err := os.WriteFile(name, a, 0o600); err != nil {
		t.Fatal(err)
	}
	if got, err := unpack(name); err != nil || !bytes.Equal(got, data) {
		t.Errorf("unpacked = %d bytes, %v, want %d", len(got), err, len(data))
	}
}

// The name of the toolchain stands in go.mod, too.
func TestToolchainIsTheModules(t *testing.T) {
	mod, err := os.ReadFile("../../../go.mod")
	if err != nil {
		t.Fatal(err)
	}
	if !bytes.Contains(mod, []byte("\ntoolchain "+toolchain+"\n")) {
		t.Errorf("go.mod names another toolchain than %s", toolchain)
	}
}
