package main

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
)

// embedder is a program that runs a worker with the production adapters.
const embedder = `package main

import (
	_ "slipway/container/docker"
	_ "slipway/job/natsqueue"
	_ "slipway/runner"
	_ "slipway/sync/s3store"
)

func main() {}
`

// embedderLines makes a module of embedder in a temporary folder, as README.md tells people to, builds it, and
// returns the number of lines of its go.mod.
func embedderLines(root string) (lines int, err error) {
	root, err = filepath.Abs(root)
	if err != nil {
		return 0, err
	}
	dir, err := os.MkdirTemp("", "slipway-embedder-")
	if err != nil {
		return 0, err
	}
	defer func() { err = errors.Join(err, os.RemoveAll(dir)) }()
	if err := os.WriteFile(filepath.Join(dir, "main.go"), []byte(embedder), 0o600); err != nil {
		return 0, err
	}
	for _, args := range [][]string{
		{"mod", "init", "example.com/embedder"},
		{"mod", "edit", "-require", "slipway@v0.0.0", "-replace", "slipway=" + root},
		{"mod", "tidy"},
		{"build", "-o", os.DevNull, "."},
	} {
		cmd := exec.Command("go", args...)
		cmd.Dir = dir
		if out, err := cmd.CombinedOutput(); err != nil {
			return 0, fmt.Errorf("make a module that imports slipway: go %s: %w\n%s", args[0], err, out)
		}
	}
	return countLines(filepath.Join(dir, "go.mod"))
}

func countLines(path string) (int, error) {
	text, err := os.ReadFile(path)
	if err != nil {
		return 0, err
	}
	return bytes.Count(text, []byte("\n")), nil
}
