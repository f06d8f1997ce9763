package testimage

import (
	"context"
	"debug/elf"
	"fmt"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
)

// onHost reports whether files of this machine can run in the engine.
func onHost(arch string) error {
	if runtime.GOOS != "linux" || runtime.GOARCH != arch {
		return fmt.Errorf("build from this machine's files: needs linux/%s, this is %s/%s: use a registry (SLIPWAY_IMAGES=pull)",
			arch, runtime.GOOS, runtime.GOARCH)
	}
	return nil
}

// program finds a program of this machine; pkg is the Debian package that has it.
func program(name, pkg string) (string, error) {
	p, err := exec.LookPath(name)
	if err != nil {
		return "", fmt.Errorf("find %s: %w: install the package %s", name, err, pkg)
	}
	return filepath.EvalSymlinks(p)
}

// busybox adds a static busybox and a link for each of its commands.
func (t *tree) busybox(ctx context.Context, source string) error {
	f, err := elf.Open(source)
	if err != nil {
		return fmt.Errorf("read %s: %w", source, err)
	}
	defer f.Close()
	for _, p := range f.Progs {
		if p.Type == elf.PT_INTERP {
			return fmt.Errorf("%s is not static: install the package busybox-static", source)
		}
	}
	list, err := run(ctx, nil, "", source, "--list-full")
	if err != nil {
		return err
	}
	for applet := range strings.FieldsSeq(list) {
		t.symlink(applet, "/bin/busybox")
	}
	return t.host("bin/busybox", source)
}

// programs adds programs of this machine, each at its own path, with the shared
// libraries that they load.
func (t *tree) programs(ctx context.Context, paths ...string) error {
	for _, p := range paths {
		if err := t.host(p, p); err != nil {
			return err
		}
	}
	return t.libraries(ctx, paths...)
}

func (t *tree) libraries(ctx context.Context, paths ...string) error {
	out, err := run(ctx, nil, "", "ldd", paths...)
	if err != nil {
		return fmt.Errorf("list the libraries of %s: %w", paths[0], err)
	}
	for _, lib := range libraries(out) {
		if err := t.host(lib, lib); err != nil {
			return err
		}
	}
	return nil
}

// libraries reads what ldd prints: "name => /path (0x…)", or "/path (0x…)" for
// the loader. A program's own line ends in a colon.
func libraries(ldd string) []string {
	var out []string
	for line := range strings.Lines(ldd) {
		fields := strings.Fields(line)
		for i, f := range fields {
			if strings.HasPrefix(f, "/") && i+1 < len(fields) && strings.HasPrefix(fields[i+1], "(0x") {
				out = append(out, f)
			}
		}
	}
	return out
}
