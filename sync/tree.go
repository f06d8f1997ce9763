package wsync

import (
	"context"
	"io"
	"io/fs"
	"iter"
	"time"
)

// Tree is the files of a workspace. Paths are slash-separated, relative, raw bytes, and at most MaxDepth components
// deep. No method follows a symbolic link.
//
// Callbacks are sequential: a method calls fn for one entry after the other, each time after fn has returned, and
// never after the method itself has returned. So fn needs no lock; it may be slow. An error of fn ends the method and
// comes back, wrapped at most. The same holds for the errors of an iterator or a reader that was handed in.
//
// The error for a path that is gone satisfies errors.Is(err, ErrNotFound). One sync at a time uses a Tree.
type Tree interface {
	// Walk calls fn for every entry but the root, a folder before what it holds,
	// siblings sorted by name. An entry that can't be read comes with Err set.
	Walk(ctx context.Context, fn func(Node) error) error
	// Hash calls fn with the checksums of regular files, in the order of paths. What can't be read comes with Err set.
	Hash(ctx context.Context, paths []string, fn func(Sum) error) error
	// ReadAll calls fn with each of the regular files open, in the order of paths, and closes it when fn returns. What
	// can't be opened comes with Err set; what fn leaves unread is skipped.
	ReadAll(ctx context.Context, paths []string, fn func(Content) error) error
	// WriteAll makes the entries and returns them as they are afterwards, in the same order. A folder comes before what
	// it holds, and no path comes twice. What exists is replaced unless it is a folder. A folder takes its mode when all
	// is written, the deepest first, so that a folder without the right to write can be filled.
	WriteAll(ctx context.Context, entries iter.Seq2[NewNode, error]) ([]Node, error)
	// Remove deletes entries with all that they hold. A path that does not exist counts as removed.
	Remove(ctx context.Context, paths []string) error
}

// NodeType is what an entry is.
type NodeType byte

// The types.
const (
	TypeFile    NodeType = 'f'
	TypeDir     NodeType = 'd'
	TypeSymlink NodeType = 'l'
	TypeOther   NodeType = 'o' // socket, device, …: recorded as skipped
)

// Node describes an entry of a Tree.
type Node struct {
	Path string
	Type NodeType
	Size int64
	// Mode: nine permission bits and setuid, setgid, sticky as in a Unix mode.
	Mode       uint32
	ModTime    int64 // Unix nanoseconds
	ChangeTime int64 // Unix nanoseconds; 0: unknown, or the file can change without it
	Inode      uint64
	Target     string
	Err        error
}

// Sum is the size and the checksums of a regular file.
type Sum struct {
	Path   string
	Size   int64
	MD5    [16]byte
	SHA256 [32]byte
	Err    error
}

// Content is one open file of a ReadAll.
type Content struct {
	Node Node
	// Reader ends after Node.Size bytes, or earlier if the file shrank.
	Reader io.Reader
	// After returns the file as it is once Reader has ended.
	After func() (Node, error)
	Err   error
}

// NewNode is one entry of a WriteAll.
type NewNode struct {
	Path    string
	Type    NodeType
	Mode    fs.FileMode
	ModTime time.Time
	Size    int64
	Target  string
	// Content of a file. It is read before the next entry is asked for.
	Content io.Reader
	// Data is what Content yields, if it is in memory, else nil. It stays as it is until WriteAll returns,
	// so that a Tree may write it later, or several at once.
	Data []byte
}
