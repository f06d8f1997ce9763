// Package devprogram builds the programs of the development servers for tests: those that a test asks for, since the S3
// gateway takes minutes and most tests don't need it. `go test` does not build them by itself.
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
	"slipway/internal/flock"
)

// The programs.
const (
	NATS = devprotocol.NATSProgram
	S3   = devprotocol.S3Program
)

// buildTime bounds a build: the first one on a machine compiles everything, on a busy machine for minutes.
const buildTime = 9 * time.Minute

// Folder is Build for a test. A failure ends t.
func Folder(t testing.TB, programs ...string) string {
	t.Helper()
	folder, err := Build(programs...)
	if err != nil {
		t.Fatal(err)
	}
	return folder
}

// Build builds programs of this checkout, and returns the folder that they are in. It is the same one in every process, so
// that a program that is up to date is not linked again. SLIPWAY_DEVSERVER names a folder that is taken as it is.
func Build(programs ...string) (folder string, err error) {
	if given := os.Getenv("SLIPWAY_DEVSERVER"); given != "" {
		return given, nil
	}
	ctx, cancel := context.WithTimeout(context.Background(), buildTime)
	defer cancel()
	for _, name := range programs {
		if folder, err = builds.build(ctx, name); err != nil {
			return "", fmt.Errorf("build %s: %w", name, err)
		}
	}
	return folder, nil
}

// once remembers what this process has built.
type once struct {
	mu    sync.Mutex
	built map[string]string // program to folder
}

var builds = once{built: map[string]string{}}

func (o *once) build(ctx context.Context, name string) (folder string, err error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	if folder, ok := o.built[name]; ok {
		return folder, nil
	}
	if folder, err = build(ctx, name); err == nil {
		o.built[name] = folder
	}
	return folder, err
}

func build(ctx context.Context, name string) (folder string, err error) {
	root, err := moduleRoot()
	if err != nil {
		return "", err
	}
	cache, err := os.UserCacheDir()
	if err != nil {
		return "", err
	}
	// Checkouts don't share it: they would replace each other's programs.
	folder = filepath.Join(cache, "slipway-test", fmt.Sprintf("%x", sha256.Sum256([]byte(root)))[:12])
	if err := os.MkdirAll(folder, 0o755); err != nil { //nolint:gosec // a cache of what everybody may read
		return "", err
	}
	// Each package's tests are a process. Those that need one program don't wait for the other one.
	lock, err := os.OpenFile(filepath.Join(folder, name+".lock"), os.O_CREATE|os.O_RDWR, 0o600)
	if err != nil {
		return "", err
	}
	defer lock.Close() // gives the lock back
	if err := flock.Wait(lock); err != nil {
		return "", err
	}
	cmd := exec.CommandContext(ctx, "go", "build", "-trimpath", "-buildvcs=false", "-o", filepath.Join(folder, name), ".")
	cmd.Dir = filepath.Join(root, "cmd", name)
	// Linked beside its place, the program is renamed into it; a copy would fail while an older one runs.
	cmd.Env = append(os.Environ(), "GOFLAGS=", "GOTMPDIR="+folder)
	if out, err := cmd.CombinedOutput(); err != nil {
		return "", fmt.Errorf("%w\n%s", err, out)
	}
	return folder, nil
}

// moduleRoot is the folder of slipway's go.mod, above the working folder of the test.
func moduleRoot() (string, error) {
	dir, err := os.Getwd()
	if err != nil {
		return "", err
	}
	for {
		if _, err := os.Stat(filepath.Join(dir, "cmd", S3, "go.mod")); err == nil {
			return dir, nil
		}
		parent := filepath.Dir(dir)
		if parent == dir {
			return "", fmt.Errorf("no folder above the working folder has cmd/%s", S3)
		}
		dir = parent
	}
}
