package wsync

import (
	"context"
	"io"
	"io/fs"
	"iter"
	"time"
)

// Tree is the files of a workspace. Paths are slash-separated, relative, raw
// bytes. No method follows a symbolic link. A Tree need not be safe for
// concurrent use by several syncs, but ReadAll's callback may be slow.
// An error for a path that is gone satisfies errors.Is(err, ErrNotFound); an error of a
// callback, an iterator or a reader that was handed in comes back wrapped at most.
type Tree interface {
	// Walk calls fn for every entry but the root, a folder before what it holds,
	// siblings sorted by name. An entry that can't be read comes with Err set.
	Walk(ctx context.Context, fn func(Node) error) error
	// Hash tells the checksums of regular files, in the order of paths.
	Hash(ctx context.Context, paths []string, fn func(Sum) error) error
	// ReadAll opens regular files, in the order of paths. What fn leaves unread is skipped.
	ReadAll(ctx context.Context, paths []string, fn func(Content) error) error
	// WriteAll makes entries as they come, a folder before what it holds, and
	// returns them as they are afterwards, in the same order. Existing non-folders are replaced. No path comes twice.
	// A folder takes its mode only when all is written, the deepest first, so that one without the
	// right to write can be filled.
	WriteAll(ctx context.Context, entries iter.Seq2[NewNode, error]) ([]Node, error)
	// Remove deletes entries with all that they hold; what is not there counts as removed.
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
	ChangeTime int64 // Unix nanoseconds; 0 where unknown, or no proof that the content is the same
	Inode      uint64
	Target     string
	Err        error
}

// Sum is the content of a regular file in short.
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
