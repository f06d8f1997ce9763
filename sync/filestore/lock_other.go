//go:build !linux && !darwin

package filestore

import "os"

// lock does nothing: the package is promised for Linux and macOS only.
func lock(*os.File) error { return nil }
