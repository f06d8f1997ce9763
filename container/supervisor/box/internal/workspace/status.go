//go:build linux

package workspace

import (
	"golang.org/x/sys/unix"

	"slipway/container/supervisor/internal/wire"
)

// pathError is an error of the rules for paths rather than of the kernel.
type pathError struct {
	code wire.Code
	text string
}

func (e *pathError) Error() string { return e.text }

// failure is an error with the path that it is about.
type failure struct {
	path string
	err  error
}

func (f *failure) Error() string { return f.path + ": " + f.err.Error() }

func at(path string, err error) error {
	if err == nil {
		return nil
	}
	return &failure{path, err}
}

// statusOf turns an error about path, which may be empty, into what travels to the worker.
func statusOf(path string, err error) wire.Status {
	if err == nil {
		return wire.Status{}
	}
	if e, ok := err.(*pathError); ok {
		return wire.Status{Code: e.code, Path: path, Message: e.text}
	}
	code := wire.CodeOther
	switch err {
	case unix.ENOENT, unix.ENOTDIR:
		code = wire.CodeNotFound
	case unix.EEXIST, unix.EISDIR, unix.ENOTEMPTY:
		code = wire.CodeExists
	case unix.ELOOP, unix.EXDEV, unix.ENAMETOOLONG, unix.EINVAL:
		code = wire.CodePath
	case unix.EACCES, unix.EPERM, unix.EROFS:
		code = wire.CodePermission
	case unix.ENOSPC, unix.EDQUOT:
		code = wire.CodeNoSpace
	case unix.EFBIG:
		code = wire.CodeTooLarge
	case errCanceled, wire.ErrEnded:
		code = wire.CodeCanceled
	}
	return wire.Status{Code: code, Path: path, Message: err.Error()}
}
