package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"go/ast"
	"go/importer"
	"go/parser"
	"go/token"
	"go/types"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
)

// source is one file of the package.
type source struct {
	name string // relative to the module's root, with slashes
	path string
	src  []byte
	ast  *ast.File
	decl *ast.File // ast without the bodies of functions
}

// pkg is the package under test, type-checked.
type pkg struct {
	path    string // import path
	fset    *token.FileSet
	files   []*source
	info    *types.Info
	imports types.Importer
}

// listed is what `go list -json` says of a package.
type listed struct {
	ImportPath, Dir, Export string
	GoFiles, CgoFiles       []string
	Module                  *struct{ Dir string }
}

// load reads the package that pattern names.
func load(ctx context.Context, pattern string) (*pkg, error) {
	all, err := list(ctx, "-export", "-deps", pattern)
	if err != nil {
		return nil, err
	}
	target := all[len(all)-1] // -deps lists dependencies first
	if len(target.CgoFiles) > 0 {
		return nil, fmt.Errorf("load %s: it uses cgo, which is not supported", pattern)
	}
	exports := map[string]string{}
	for _, p := range all {
		exports[p.ImportPath] = p.Export
	}
	p := &pkg{path: target.ImportPath, fset: token.NewFileSet()}
	p.imports = importer.ForCompiler(p.fset, "gc", func(path string) (io.ReadCloser, error) { return os.Open(exports[path]) })
	for _, name := range target.GoFiles {
		f, err := p.read(filepath.Join(target.Dir, name), target.Module.Dir)
		if err != nil {
			return nil, err
		}
		p.files = append(p.files, f)
	}
	p.info = &types.Info{Types: map[ast.Expr]types.TypeAndValue{}, Defs: map[*ast.Ident]types.Object{}, Uses: map[*ast.Ident]types.Object{}}
	if err := p.check(); err != nil {
		return nil, fmt.Errorf("check %s: %w", pattern, err)
	}
	return p, nil
}

func (p *pkg) read(path, root string) (*source, error) {
	src, err := os.ReadFile(path)
	if err != nil {
		return nil, err
	}
	parsed, err := parser.ParseFile(p.fset, path, src, parser.ParseComments|parser.SkipObjectResolution)
	if err != nil {
		return nil, err
	}
	rel, err := filepath.Rel(root, path)
	return &source{name: filepath.ToSlash(rel), path: path, src: src, ast: parsed, decl: withoutBodies(parsed)}, err
}

// check type-checks the package.
func (p *pkg) check() error {
	var files []*ast.File
	for _, f := range p.files {
		files = append(files, f.ast)
	}
	config := types.Config{Importer: p.imports}
	_, err := config.Check(p.path, p.fset, files, p.info)
	return err
}

// compiles tells whether the mutant is a valid program. Imports that only the changed text used are noted in m: they
// are no reason to leave the mutant out. The bodies of the other files' functions do not matter and are left out,
// which makes the check ten times as quick; what those files then lack is no error of the mutant.
func (p *pkg) compiles(m *mutant) bool {
	name := m.file.path + " mutated"
	parsed, err := parser.ParseFile(p.fset, name, m.apply(), parser.SkipObjectResolution)
	if err != nil {
		return false
	}
	files := []*ast.File{parsed}
	for _, f := range p.files {
		if f != m.file {
			files = append(files, f.decl)
		}
	}
	ok := true
	config := types.Config{Importer: p.imports, Error: func(err error) {
		var e types.Error
		if !errors.As(err, &e) || p.fset.Position(e.Pos).Filename != name {
			return
		}
		if strings.HasSuffix(e.Msg, "imported and not used") || strings.Contains(e.Msg, "imported as") {
			m.unused = append(m.unused, p.fset.Position(e.Pos).Offset)
			return
		}
		ok = false
	}}
	_, _ = config.Check(p.path, p.fset, files, nil) // Error has heard it all
	return ok
}

// withoutBodies returns a copy of the file in which functions are only declared.
func withoutBodies(f *ast.File) *ast.File {
	bare := *f
	bare.Decls = nil
	for _, d := range f.Decls {
		if fn, ok := d.(*ast.FuncDecl); ok {
			declared := *fn
			declared.Body = nil
			d = &declared
		}
		bare.Decls = append(bare.Decls, d)
	}
	return &bare
}

func list(ctx context.Context, args ...string) ([]listed, error) {
	cmd := exec.CommandContext(ctx, "go", append([]string{"list", "-json=ImportPath,Dir,Export,GoFiles,CgoFiles,Module"}, args...)...)
	var stdout, stderr bytes.Buffer
	cmd.Stdout, cmd.Stderr = &stdout, &stderr
	if err := cmd.Run(); err != nil {
		return nil, fmt.Errorf("list packages: %w: %s", err, bytes.TrimSpace(stderr.Bytes()))
	}
	var all []listed
	for d := json.NewDecoder(&stdout); ; {
		var p listed
		if err := d.Decode(&p); errors.Is(err, io.EOF) {
			break
		} else if err != nil {
			return nil, fmt.Errorf("list packages: %w", err)
		}
		all = append(all, p)
	}
	if len(all) == 0 {
		return nil, errors.New("list packages: none matches")
	}
	return all, nil
}
