package workspace

import (
	"context"
	"errors"
	"fmt"
	"iter"

	"slipway/container"
	wsync "slipway/sync"
)

// boxTree shows the inside of a box to package wsync. The two packages don't
// know each other; their values mean the same.
type boxTree struct{ files container.Files }

var _ wsync.Tree = boxTree{}

// Walk implements wsync.Tree.
func (t boxTree) Walk(ctx context.Context, fn func(wsync.Node) error) error {
	return treeError(t.files.Walk(ctx, func(i container.FileInfo) error { return fn(node(i)) }))
}

// Hash implements wsync.Tree.
func (t boxTree) Hash(ctx context.Context, paths []string, fn func(wsync.Sum) error) error {
	return treeError(t.files.Hash(ctx, paths, func(s container.Sum) error {
		return fn(wsync.Sum{Path: s.Path, Size: s.Size, MD5: s.MD5, SHA256: s.SHA256, Err: treeError(s.Err)})
	}))
}

// ReadAll implements wsync.Tree.
func (t boxTree) ReadAll(ctx context.Context, paths []string, fn func(wsync.Content) error) error {
	return treeError(t.files.ReadAll(ctx, paths, func(c container.FileContent) error {
		out := wsync.Content{Node: node(c.Info), Reader: c.Reader, Err: treeError(c.Err)}
		if c.After != nil {
			out.After = func() (wsync.Node, error) {
				after, err := c.After()
				return node(after), treeError(err)
			}
		}
		return fn(out)
	}))
}

// WriteAll implements wsync.Tree.
func (t boxTree) WriteAll(ctx context.Context, entries iter.Seq2[wsync.NewNode, error]) ([]wsync.Node, error) {
	infos, err := t.files.WriteAll(ctx, func(yield func(container.NewFile, error) bool) {
		for n, err := range entries {
			if !yield(newFile(n), err) {
				return
			}
		}
	})
	nodes := make([]wsync.Node, len(infos))
	for i := range infos {
		nodes[i] = node(infos[i])
	}
	return nodes, treeError(err)
}

// Remove implements wsync.Tree.
func (t boxTree) Remove(ctx context.Context, paths []string) error {
	for _, p := range paths {
		if err := t.files.Delete(ctx, p); err != nil {
			return treeError(err)
		}
	}
	return nil
}

func node(i container.FileInfo) wsync.Node {
	return wsync.Node{
		Path: i.Path, Type: wsync.NodeType(i.Type), Size: i.Size, Mode: i.Mode, ModTime: i.ModTime,
		ChangeTime: i.ChangeTime, Inode: i.Inode, Target: i.Target, Err: treeError(i.Err),
	}
}

func newFile(n wsync.NewNode) container.NewFile {
	return container.NewFile{
		Path: n.Path, Type: container.FileType(n.Type), Mode: n.Mode, ModTime: n.ModTime,
		Size: n.Size, Target: n.Target, Content: n.Content,
	}
}

// treeError makes "not found" mean the same on both sides.
func treeError(err error) error {
	if errors.Is(err, container.ErrNotFound) && !errors.Is(err, wsync.ErrNotFound) {
		return fmt.Errorf("%w: %w", wsync.ErrNotFound, err)
	}
	return err
}
