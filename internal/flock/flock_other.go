//go:build !unix

package flock

import "os"

// Try locks nothing here.
func Try(*os.File) error { return nil }

// Wait locks nothing here.
func Wait(*os.File) error { return nil }
