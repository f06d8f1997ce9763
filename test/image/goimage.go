package testimage

import (
	"context"
	"debug/elf"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"strings"

	v1 "github.com/google/go-containerregistry/pkg/v1"
)

// golangRecipe is a Go toolchain, git and a shell: this machine's own, at the
// places and with the environment of the published image. Like there, a job that is
// not root sets HOME and GOCACHE to a folder that it may write.
func golangRecipe(ctx context.Context, arch string) (recipe, error) {
	if err := onHost(arch); err != nil {
		return recipe{}, err
	}
	parts, err := findToolchain(ctx)
	if err != nil {
		return recipe{}, err
	}
	return recipe{
		inputs: parts.inputs,
		from:   fmt.Sprintf("this machine's %s and %s, and %s", parts.goVersion, parts.gitVersion, parts.busybox.from),
		config: v1.Config{
			Cmd:        []string{"sh"},
			WorkingDir: "/go",
			Env: []string{
				"PATH=/go/bin:/usr/local/go/bin:/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin",
				"GOLANG_VERSION=" + strings.TrimPrefix(parts.goVersion, "go"), "GOTOOLCHAIN=local", "GOPATH=/go",
			},
		},
		files: parts.files,
	}, nil
}

// toolchain says where the parts of the image lie on this machine.
type toolchain struct {
	goroot, goVersion string
	git, gitCore      string
	gitVersion        string
	busybox           found
	inputs            []string
}

func findToolchain(ctx context.Context) (*toolchain, error) {
	var p toolchain
	var err error
	if p.git, err = exec.LookPath("git"); err != nil {
		return nil, fmt.Errorf("%w: %w", ErrUnavailable, err)
	}
	if p.git, err = filepath.EvalSymlinks(p.git); err != nil {
		return nil, err
	}
	if p.busybox, err = findBusybox(ctx); err != nil {
		return nil, err
	}
	for _, ask := range []struct {
		into *string
		argv []string
	}{
		{&p.goroot, []string{"go", "env", "GOROOT"}},
		{&p.goVersion, []string{"go", "env", "GOVERSION"}},
		{&p.gitVersion, []string{p.git, "--version"}},
		{&p.gitCore, []string{p.git, "--exec-path"}},
	} {
		if *ask.into, err = run(ctx, nil, "", ask.argv[0], ask.argv[1:]...); err != nil {
			return nil, err
		}
	}
	if want := "go" + strings.TrimPrefix(Golang, "golang:"); !strings.HasPrefix(p.goVersion, want) {
		return nil, fmt.Errorf("%w: build %s: this machine has %s: run it with GOTOOLCHAIN=%s.0 or newer", ErrUnavailable, Golang, p.goVersion, want)
	}
	p.inputs = []string{"golang", p.goVersion, p.gitVersion}
	for _, file := range []string{p.git, p.busybox.path} {
		digest, err := fileDigest(file)
		if err != nil {
			return nil, err
		}
		p.inputs = append(p.inputs, digest)
	}
	return &p, nil
}

func (p *toolchain) files(ctx context.Context) (*tree, error) {
	t := newTree()
	t.base()
	t.text("etc/passwd", "root:x:0:0:root:/root:/bin/sh\nnobody:x:65534:65534:nobody:/:/bin/false\nuser:x:1000:1000:user:/:/bin/sh\n")
	for _, d := range []string{"go", "go/src", "go/bin"} {
		t.dir(d, 0o1777, 0)
	}
	if err := t.busybox(ctx, p.busybox.path); err != nil {
		return nil, err
	}
	if err := p.addGo(t); err != nil {
		return nil, fmt.Errorf("copy the Go toolchain: %w", err)
	}
	if err := p.addGit(ctx, t); err != nil {
		return nil, fmt.Errorf("copy git: %w", err)
	}
	return t, nil
}

// addGo adds what the go command needs; a distribution may have the folders of
// its GOROOT elsewhere, behind symlinks.
func (p *toolchain) addGo(t *tree) error {
	for _, name := range []string{"bin", "lib", "pkg", "src"} {
		if err := t.hostDir("usr/local/go/"+name, filepath.Join(p.goroot, name)); err != nil {
			return err
		}
	}
	for _, name := range []string{"VERSION", "go.env"} {
		if err := t.host("usr/local/go/"+name, filepath.Join(p.goroot, name)); err != nil {
			return err
		}
	}
	return nil
}

// addGit adds git, the programs that it starts, and the libraries of all of them.
func (p *toolchain) addGit(ctx context.Context, t *tree) error {
	if err := t.hostDir(p.gitCore, p.gitCore); err != nil {
		return err
	}
	const templates = "/usr/share/git-core/templates"
	if _, err := os.Stat(templates); err == nil {
		if err := t.hostDir(templates, templates); err != nil {
			return err
		}
	}
	dynamic, err := dynamicPrograms(p.gitCore)
	if err != nil {
		return err
	}
	if err := t.programs(ctx, p.git); err != nil {
		return err
	}
	return t.libraries(ctx, dynamic...)
}

// dynamicPrograms lists the programs in dir that need shared libraries.
func dynamicPrograms(dir string) ([]string, error) {
	var out []string
	err := filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
		if err != nil || !d.Type().IsRegular() {
			return err
		}
		f, err := elf.Open(path)
		if err != nil {
			return nil //nolint:nilerr // a script, which is fine
		}
		defer f.Close()
		if libs, err := f.ImportedLibraries(); err == nil && len(libs) > 0 {
			out = append(out, path)
		}
		return nil
	})
	return out, err
}
