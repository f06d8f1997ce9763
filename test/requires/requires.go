// Package requires says what a test needs beyond the Go toolchain. A test that asks
// for something that is not there is skipped with the reason, which `make test`
// repeats in its last lines; with CI=true it fails instead, since a check that
// does not run in CI does not exist.
package requires

import (
	"context"
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
		missing(t, "needs Docker Engine, which does not answer: "+err.Error())
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

// Program skips t unless the program is in PATH; pkg is the Debian package that has it.
func Program(t testing.TB, name, pkg string) string {
	t.Helper()
	path, err := exec.LookPath(name)
	if err != nil {
		missing(t, "needs "+name+": install the package "+pkg)
	}
	return path
}

var engine = sync.OnceValue(func() error {
	ctx, cancel := context.WithTimeout(context.Background(), 20*time.Second)
	defer cancel()
	return exec.CommandContext(ctx, "docker", "version").Run()
})

func missing(t testing.TB, why string) {
	t.Helper()
	if os.Getenv("CI") == "true" {
		t.Fatal(why)
	}
	t.Skip(why)
}
