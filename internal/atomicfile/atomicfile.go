// Package atomicfile replaces files as a whole: a reader, and a process that starts after a crash, finds the old content or
// the new one.
package atomicfile

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
)

// Write makes data the content of the file at path, for its owner alone (mode 0600). The folder must be there. Once Write
// returns nil, the content outlives the process and a loss of power. A crash may leave a file ".new-…" in the folder.
func Write(path string, data []byte) error {
	dir := filepath.Dir(path)
	f, err := os.CreateTemp(dir, ".new-*")
	if err != nil {
		return fmt.Errorf("replace %s: %w", path, err)
	}
	_, err = f.Write(data)
	if err == nil {
		err = f.Sync()
	}
	if err = errors.Join(err, f.Close()); err == nil {
		err = os.Rename(f.Name(), path)
	}
	if err != nil {
		return fmt.Errorf("replace %s: %w", path, errors.Join(err, os.Remove(f.Name())))
	}
	return syncDir(dir)
}

// syncDir has the names in dir outlive a loss of power.
func syncDir(dir string) error {
	if runtime.GOOS == "windows" { // which does that by itself, and syncs no folder
		return nil
	}
	d, err := os.Open(dir)
	if err != nil {
		return err
	}
	return errors.Join(d.Sync(), d.Close())
}
