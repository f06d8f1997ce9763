package testimage

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
)

// serversMod is the go.mod file that pins the servers' programs, below the module's root. They are in no
// go.mod of the library, whose users need neither.
const serversMod = "tools/go.mod"

// goBuild builds a static linux program at the version that modfile pins (empty: the module's own go.mod), and returns
// its path. The path is the same each time, so that a program that is up to date is not linked again.
func goBuild(ctx context.Context, modfile, pkg, arch string) (string, error) {
	root, err := moduleRoot(ctx)
	if err != nil {
		return "", err
	}
	cache, err := cacheDir("programs")
	if err != nil {
		return "", err
	}
	out := filepath.Join(cache, strings.NewReplacer("/", "_", ".", "_").Replace(pkg)+"-"+arch)
	cmd := exec.CommandContext(ctx, "go", "build", "-trimpath", "-buildvcs=false", "-ldflags=-s -w", "-modfile="+modfile, "-o", out, pkg)
	cmd.Dir = root
	cmd.Env = append(os.Environ(), "CGO_ENABLED=0", "GOOS=linux", "GOARCH="+arch, "GOFLAGS=")
	if said, err := cmd.CombinedOutput(); err != nil {
		return "", fmt.Errorf("build %s: %w: %s", pkg, err, said)
	}
	return out, nil
}

// moduleRoot is the folder of slipway's go.mod: that of the working folder, since
// tests and tools run inside the module.
func moduleRoot(ctx context.Context) (string, error) {
	mod, err := run(ctx, nil, "", "go", "env", "GOMOD")
	if err != nil {
		return "", err
	}
	if filepath.Base(mod) != "go.mod" {
		return "", fmt.Errorf("find go.mod: %q: run this inside the module", mod)
	}
	return filepath.Dir(mod), nil
}

// goModule returns what names a program of a module that serversMod pins: its version, and the toolchain's.
func goModule(ctx context.Context, module, arch string) (version string, inputs []string, err error) {
	root, err := moduleRoot(ctx)
	if err != nil {
		return "", nil, err
	}
	version, err = run(ctx, nil, root, "go", "list", "-modfile="+serversMod, "-m", "-f", "{{.Version}}", module)
	if err != nil {
		return "", nil, err
	}
	goVersion, err := run(ctx, nil, root, "go", "env", "GOVERSION")
	if err != nil {
		return "", nil, err
	}
	return version, []string{module, version, goVersion, arch}, nil
}
