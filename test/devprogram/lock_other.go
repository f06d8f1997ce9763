//go:build !unix

package devprogram

// lock does nothing: the servers run on Linux and macOS only.
func lock(string) (unlock func() error, err error) { return func() error { return nil }, nil }
