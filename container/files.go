package container

import (
	"context"
	"io"
	"io/fs"
	"iter"
	"time"
)

// Files is the workspace of a running box. Paths are slash-separated and
// relative to the workspace, "." being the workspace itself; a path that leaves
// it, or passes through a symbolic link, is ErrPath. Everything is done as the
// steps' user, relative to open directories, so that a process in the box
// can't redirect it. Methods are safe for concurrent use.
//
// A method that takes a function calls it from the caller's own goroutine, one call after the other, and has
// made its last call when it returns. If the function returns an error the method ends early with that error.
//
// Errors: ErrNotFound, ErrNotRegular, ErrPath, ErrPermission, ErrNoSpace,
// ErrTooLarge, ErrExists, and those of Sandbox.Exec.
type Files interface {
	// Stat describes the entry at path, without following a link.
	Stat(ctx context.Context, path string) (FileInfo, error)
	// Read copies a regular file to w. A file of more than limit bytes is ErrTooLarge before
	// the first byte; 0 means no limit. What is returned describes the bytes that were copied.
	Read(ctx context.Context, path string, w io.Writer, limit int64) (FileInfo, error)
	// Write puts a file at path, atomically, and makes missing folders. Whatever non-folder was there is replaced.
	Write(ctx context.Context, path string, r io.Reader, mode fs.FileMode) error
	// List returns the entries of a folder, sorted by name.
	List(ctx context.Context, path string) ([]FileInfo, error)
	// Mkdir makes a folder and its missing parents. A folder that exists is fine.
	Mkdir(ctx context.Context, path string, mode fs.FileMode) error
	// Delete removes an entry with all it holds. What is not there counts as removed.
	Delete(ctx context.Context, path string) error

	// Walk calls fn for every entry below the workspace, a folder before what it
	// holds, siblings sorted by name. An entry that can't be read is passed with Err set, and
	// what it holds is left out.
	Walk(ctx context.Context, fn func(FileInfo) error) error
	// Hash calls fn with the checksums of each regular file, in the order of paths. A path that
	// can't be hashed is passed with Err set.
	Hash(ctx context.Context, paths []string, fn func(Sum) error) error
	// ReadAll calls fn with each regular file, in the order of paths: one request for all.
	// If fn leaves a part of a file unread, it is skipped. Reader and After are valid only during the call.
	ReadAll(ctx context.Context, paths []string, fn func(FileContent) error) error
	// WriteAll makes folders, files and links as they come: one request for all. A folder must come
	// before what it holds. It returns the entries as they are on disk afterwards, in the same order.
	// The error of an entry is a *FileError with its path, whichever entry was asked for last.
	// Files are made new; one that exists is replaced. Each entry is done with its Content when the next one is asked for.
	WriteAll(ctx context.Context, entries iter.Seq2[NewFile, error]) ([]FileInfo, error)
}

// FileType is what an entry is.
type FileType byte

// The types. An entry of TypeOther can be listed and deleted only.
const (
	TypeFile    FileType = 'f'
	TypeDir     FileType = 'd'
	TypeSymlink FileType = 'l'
	TypeOther   FileType = 'o'
)

// FileInfo describes one entry of a workspace.
type FileInfo struct {
	// Path relative to the workspace, in raw bytes: not necessarily UTF-8.
	Path string
	Type FileType
	Size int64
	// Mode holds the nine permission bits and setuid, setgid, sticky as in a Unix mode.
	Mode uint32
	// ModTime and ChangeTime are Unix times in nanoseconds. ChangeTime is 0 where it does not prove that
	// the content is the same, as in a workspace in memory.
	ModTime    int64
	ChangeTime int64
	Inode      uint64
	// Target of a symbolic link, verbatim.
	Target string
	// Err says why the entry, or what it holds, can't be read. Only in Walk.
	Err error
}

// Sum is the content of a regular file in short.
type Sum struct {
	Path   string
	Size   int64
	MD5    [16]byte
	SHA256 [32]byte
	Err    error
}

// FileContent is one file of ReadAll.
type FileContent struct {
	// Info as it was before the first byte.
	Info FileInfo
	// Reader ends after Info.Size bytes, or earlier if the file shrank.
	Reader io.Reader
	// After returns the file as it was after the last byte; call it when Reader has ended.
	// A difference to Info means that the file changed meanwhile.
	After func() (FileInfo, error)
	// Err says why the file can't be read; Reader and After are nil then.
	Err error
}

// NewFile is one entry of WriteAll.
type NewFile struct {
	Path    string
	Type    FileType
	Mode    fs.FileMode
	ModTime time.Time // zero: now
	Size    int64
	Target  string
	// Content holds exactly Size bytes. Nil with Size 0.
	Content io.Reader
}
