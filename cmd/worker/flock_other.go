//go:build !unix

package main

import "os"

// flock does nothing here: the development servers, which have their data in the folder, are not supported either.
func flock(*os.File) error { return nil }
