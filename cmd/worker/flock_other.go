//go:build !unix

package main

import "os"

// flock does nothing here: the embedded gateway, which comes with the folder, is not supported either.
func flock(*os.File) error { return nil }
