// Package requires says what a test needs beyond the Go toolchain. A test that asks
// for something that is not there is skipped with the reason, which `make test`
// repeats in its last lines. With CI=true it fails instead, since a check that
// does not run in CI does not exist. Package testimage has the same for images.
package requires

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"os/exec"
	"sync"
	"testing"
	"time"
)

// Engine skips t unless Docker Engine answers. Plain `go test ./...` does not ask
// for it: `make test` sets SLIPWAY_TEST_ENGINE=1.
func Engine(t testing.TB) {
	t.Helper()
	if os.Getenv("SLIPWAY_TEST_ENGINE") == "" {
		t.Skip("needs Docker Engine: run make test, or set SLIPWAY_TEST_ENGINE=1")
	}
	if err := engine(); err != nil {
		Missing(t, "needs Docker Engine: start it, or set DOCKER_HOST: "+err.Error())
	}
}

// E2E skips t unless the end-to-end tests were asked for: `make e2e` sets SLIPWAY_TEST_E2E=1.
func E2E(t testing.TB) {
	t.Helper()
	if os.Getenv("SLIPWAY_TEST_E2E") == "" {
		t.Skip("end-to-end: run make e2e, or set SLIPWAY_TEST_E2E=1")
	}
	Engine(t)
}

// Long skips t unless the long tests were asked for: `make leftovers` sets SLIPWAY_TEST_LONG=1.
func Long(t testing.TB) {
	t.Helper()
	if !IsLong() {
		t.Skip("takes minutes: run make leftovers, or set SLIPWAY_TEST_LONG=1")
	}
}

// IsLong tells whether the long tests were asked for, for a test that is a longer one then.
func IsLong() bool { return os.Getenv("SLIPWAY_TEST_LONG") != "" }

var engine = sync.OnceValue(func() error {
	ctx, cancel := context.WithTimeout(context.Background(), 20*time.Second)
	defer cancel()
	out, err := exec.CommandContext(ctx, "docker", "version", "--format", "{{.Server.Version}}").CombinedOutput()
	if err != nil {
		return fmt.Errorf("docker version: %w: %s", err, bytes.TrimSpace(out))
	}
	return nil
})

// Missing skips t for lack of what why names, or fails it with CI=true.
func Missing(t testing.TB, why string) {
	t.Helper()
	if os.Getenv("CI") == "true" {
		t.Fatal(why)
	}
	t.Skip(why)
}
