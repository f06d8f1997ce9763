// Package sizes bounds how much one file holds and one type can do. The linter funlen bounds a function.
package sizes

import (
	"bytes"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// CONTRIBUTING.md names the bounds. They are for code that is not a test's.
const (
	maxLines   = 300
	maxMethods = 25
)

// TestSizes looks at every file of the repository.
func TestSizes(t *testing.T) {
	t.Parallel()
	found, files, err := oversized(os.DirFS("../.."))
	if err != nil {
		t.Fatal(err)
	}
	if files < 100 {
		t.Errorf("looked at %d files, want those of the whole repository", files)
	}
	for _, f := range found {
		t.Error(f)
	}
}

// oversized describes what in the tree is over a bound, and counts the files that it looked at.
func oversized(tree fs.FS) (found []string, files int, err error) {
	methods := map[string]map[string]bool{} // the names of a type's methods, by folder and type
	err = fs.WalkDir(tree, ".", func(path string, d fs.DirEntry, err error) error {
		switch base := filepath.Base(path); {
		case err != nil:
			return err
		case d.IsDir() && (base == "testdata" || strings.HasPrefix(base, ".") && base != "."):
			return fs.SkipDir
		case d.IsDir() || !strings.HasSuffix(path, ".go") || strings.HasSuffix(path, "_test.go"):
			return nil
		}
		files++
		src, err := fs.ReadFile(tree, path)
		if err != nil {
			return err
		}
		parsed, err := parser.ParseFile(token.NewFileSet(), path, src, parser.SkipObjectResolution|parser.ParseComments)
		if err != nil || ast.IsGenerated(parsed) {
			return err
		}
		if n := bytes.Count(src, []byte{'\n'}); n > maxLines {
			found = append(found, fmt.Sprintf("%s has %d lines, and a file has up to %d: move a part that stands alone to a file of its own", path, n, maxLines))
		}
		noteMethods(methods, filepath.Dir(path), parsed)
		return nil
	})
	for _, name := range slices.Sorted(maps.Keys(methods)) {
		if n := len(methods[name]); n > maxMethods {
			found = append(found, fmt.Sprintf("type %s has %d methods, and a type has up to %d: give a part of them a type of its own", name, n, maxMethods))
		}
	}
	return found, files, err
}

// noteMethods adds the methods of one file. A method that several files have, each for another platform, is one.
func noteMethods(methods map[string]map[string]bool, folder string, parsed *ast.File) {
	for _, d := range parsed.Decls {
		f, ok := d.(*ast.FuncDecl)
		if !ok || f.Recv == nil {
			continue
		}
		of := f.Recv.List[0].Type
		if star, ok := of.(*ast.StarExpr); ok {
			of = star.X
		}
		if generic, ok := of.(*ast.IndexExpr); ok {
			of = generic.X
		}
		if generic, ok := of.(*ast.IndexListExpr); ok {
			of = generic.X
		}
		name := folder + "." + of.(*ast.Ident).Name
		if methods[name] == nil {
			methods[name] = map[string]bool{}
		}
		methods[name][f.Name.Name] = true
	}
}
