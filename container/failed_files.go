package container

import (
	"context"
	"io"
	"io/fs"
	"iter"
)

// FailedFiles is the workspace of a box that does not run: every method returns err.
// It is for providers: Sandbox.Files returns it, since Files itself can't fail.
func FailedFiles(err error) Files { return failedFiles{err} }

type failedFiles struct{ err error }

func (f failedFiles) Stat(context.Context, string) (FileInfo, error) {
	return FileInfo{}, f.err
}

func (f failedFiles) Read(context.Context, string, io.Writer, int64) (FileInfo, error) {
	return FileInfo{}, f.err
}

func (f failedFiles) Write(context.Context, string, io.Reader, fs.FileMode) error { return f.err }

func (f failedFiles) List(context.Context, string) ([]FileInfo, error) { return nil, f.err }

func (f failedFiles) Mkdir(context.Context, string, fs.FileMode) error { return f.err }

func (f failedFiles) Delete(context.Context, string) error { return f.err }

func (f failedFiles) Walk(context.Context, func(FileInfo) error) error { return f.err }

func (f failedFiles) Hash(context.Context, []string, func(Sum) error) error { return f.err }

func (f failedFiles) ReadAll(context.Context, []string, func(FileContent) error) error {
	return f.err
}

func (f failedFiles) WriteAll(context.Context, iter.Seq2[NewFile, error]) ([]FileInfo, error) {
	return nil, f.err
}
