package testimage

import (
	"context"
	"debug/elf"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
)

// onHost reports whether files of this machine can run in the engine.
func onHost(arch string) error {
	if runtime.GOOS != "linux" || runtime.GOARCH != arch {
		return fmt.Errorf("%w: to build it from this machine's files takes linux/%s, and this is %s/%s: let the engine reach a registry",
			ErrUnavailable, arch, runtime.GOOS, runtime.GOARCH)
	}
	return nil
}

// found is a program, and where it is from, for people.
type found struct{ path, from string }

// program finds a program that is fit for an image: this machine's own, or else that of the Debian package pkg.
func program(ctx context.Context, name, pkg string, fit func(path string) error) (found, error) {
	if p, err := exec.LookPath(name); err == nil && fit(p) == nil {
		p, err = filepath.EvalSymlinks(p)
		return found{p, "this machine's " + name}, err
	}
	dir, err := debianPackage(ctx, pkg)
	if err != nil {
		return found{}, fmt.Errorf("%w: find %s: %w: let the engine reach a registry, or install %s", ErrUnavailable, name, err, pkg)
	}
	for _, bin := range []string{"usr/bin", "bin"} {
		p := filepath.Join(dir, bin, name)
		if _, err := os.Stat(p); err == nil {
			return found{p, "Debian's package " + pkg}, fit(p)
		}
	}
	return found{}, fmt.Errorf("find %s: Debian's package %s in %s has no such program: remove that folder, and try again", name, pkg, dir)
}

// anyProgram is fit to be copied with its libraries.
func anyProgram(string) error { return nil }

// staticProgram reports why the program at path can't run where there are no libraries.
func staticProgram(path string) error {
	f, err := elf.Open(path)
	if err != nil {
		return fmt.Errorf("read %s: %w", path, err)
	}
	defer f.Close()
	for _, p := range f.Progs {
		if p.Type == elf.PT_INTERP {
			return fmt.Errorf("%s is not static", path)
		}
	}
	return nil
}

// findBusybox finds a busybox that runs by itself. The one that most distributions install by default does not.
func findBusybox(ctx context.Context) (found, error) {
	return program(ctx, "busybox", "busybox-static", staticProgram)
}

// busybox adds a static busybox and a link for each of its commands.
func (t *tree) busybox(ctx context.Context, source string) error {
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
