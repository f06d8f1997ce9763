package wsynctest

import (
	"context" //nolint:gosec // part of the contract
	"crypto/sha256"
	"errors"
	"fmt"
	"io"
	"iter"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	wsync "slipway/sync"
	"slipway/sync/folder"
)

// NewFolder makes a folder with these files, and returns its Tree.
func NewFolder(t testing.TB, files map[string]string) wsync.Tree {
	t.Helper()
	dir := t.TempDir()
	for name, content := range files {
		path := filepath.Join(dir, filepath.FromSlash(name))
		if err := errors.Join(os.MkdirAll(filepath.Dir(path), 0o755), os.WriteFile(path, []byte(content), 0o644)); err != nil { //nolint:gosec // ordinary modes are what is tested
			t.Fatal(err)
		}
	}
	tree, err := folder.New(dir)
	if err != nil {
		t.Fatal(err)
	}
	return tree
}

// File is an entry for a WriteAll: a file of mode 0644 and a fixed time.
func File(path, content string) wsync.NewNode {
	return wsync.NewNode{
		Path: path, Type: wsync.TypeFile, Mode: 0o644, Size: int64(len(content)),
		ModTime: time.Unix(1_700_000_000, 123_456_789), Content: strings.NewReader(content),
	}
}

// Dir is a folder of mode 0755.
func Dir(path string) wsync.NewNode {
	return wsync.NewNode{Path: path, Type: wsync.TypeDir, Mode: 0o755}
}

// Link is a symbolic link.
func Link(path, target string) wsync.NewNode {
	return wsync.NewNode{Path: path, Type: wsync.TypeSymlink, Mode: 0o777, Target: target, Size: int64(len(target))}
}

// Entries is a sequence for WriteAll.
func Entries(nodes ...wsync.NewNode) iter.Seq2[wsync.NewNode, error] {
	return func(yield func(wsync.NewNode, error) bool) {
		for _, n := range nodes {
			if !yield(n, nil) {
				return
			}
		}
	}
}

// Listing describes a tree in one line per entry, content included, for comparison.
func Listing(ctx context.Context, tree wsync.Tree) (map[string]string, error) {
	out := map[string]string{}
	var files []string
	err := tree.Walk(ctx, func(n wsync.Node) error {
		if n.Err != nil {
			return fmt.Errorf("%q: %w", n.Path, n.Err)
		}
		out[n.Path] = fmt.Sprintf("%c %04o %s", n.Type, n.Mode&0o777, n.Target)
		if n.Type == wsync.TypeFile {
			out[n.Path] += fmt.Sprint(n.ModTime)
			files = append(files, n.Path)
		}
		return nil
	})
	if err != nil {
		return nil, err
	}
	err = tree.ReadAll(ctx, files, func(c wsync.Content) error {
		if c.Err != nil {
			return fmt.Errorf("%q: %w", c.Node.Path, c.Err)
		}
		h := sha256.New()
		n, err := io.Copy(h, c.Reader)
		out[c.Node.Path] += fmt.Sprintf(" %d %x", n, h.Sum(nil))
		return err
	})
	return out, err
}
