// Package devprogram builds the program slipway-devserver for tests. The program is a module of its own, so
// `go test` does not build it by itself.
package devprogram

import (
	"context"
	"crypto/sha256"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"sync"
	"testing"
	"time"

	"slipway/internal/devprotocol"
)

// buildTime bounds the build: the first one on a machine compiles everything, on a busy machine for minutes.
const buildTime = 9 * time.Minute

// Path is Build for a test. A failure ends t.
func Path(t testing.TB) string {
	t.Helper()
	path, err := Build()
	if err != nil {
		t.Fatal(err)
	}
	return path
}

// Build builds the program of this checkout, and returns its path. The path is the same in every process, so that a program
// that is up to date is not linked again. SLIPWAY_DEVSERVER names a program that is taken as it is.
var Build = sync.OnceValues(func() (string, error) {
	if given := os.Getenv("SLIPWAY_DEVSERVER"); given != "" {
		return given, nil
	}
	ctx, cancel := context.WithTimeout(context.Background(), buildTime)
	defer cancel()
	path, err := build(ctx)
	if err != nil {
		return "", fmt.Errorf("build %s: %w", devprotocol.Program, err)
	}
	return path, nil
})

func build(ctx context.Context) (string, error) {
	root, err := moduleRoot()
	if err != nil {
		return "", err
	}
	cache, err := os.UserCacheDir()
	if err != nil {
		return "", err
	}
	// Checkouts don't share it: they would replace each other's program.
	dir := filepath.Join(cache, "slipway-test", fmt.Sprintf("%x", sha256.Sum256([]byte(root)))[:12])
	if err := os.MkdirAll(dir, 0o755); err != nil { //nolint:gosec // a cache of what everybody may read
		return "", err
	}
	unlock, err := lock(filepath.Join(dir, "lock")) // each package's tests are a process
	if err != nil {
		return "", err
	}
	defer func() { _ = unlock() }() // closing the file can't fail in a way that matters
	path := filepath.Join(dir, devprotocol.Program)
	cmd := exec.CommandContext(ctx, "go", "build", "-trimpath", "-buildvcs=false", "-o", path, ".")
	cmd.Dir = filepath.Join(root, "cmd", devprotocol.Program)
	// Linked beside its place, the program is renamed into it; a copy would fail while an older one runs.
	cmd.Env = append(os.Environ(), "GOFLAGS=", "GOTMPDIR="+dir)
	if out, err := cmd.CombinedOutput(); err != nil {
		return "", fmt.Errorf("%w\n%s", err, out)
	}
	return path, nil
}

// moduleRoot is the folder of slipway's go.mod, above the working folder of the test.
func moduleRoot() (string, error) {
	dir, err := os.Getwd()
	if err != nil {
		return "", err
	}
	for {
		if _, err := os.Stat(filepath.Join(dir, "cmd", devprotocol.Program, "go.mod")); err == nil {
			return dir, nil
		}
		parent := filepath.Dir(dir)
		if parent == dir {
			return "", fmt.Errorf("no folder above the working folder has cmd/%s", devprotocol.Program)
		}
		dir = parent
	}
}
