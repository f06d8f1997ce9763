//go:build linux

package main

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"

	"golang.org/x/sys/unix"
)

// openUp lets every user into a folder that belongs to this process's user: the owner needs no capability for that.
func openUp(dir string, mode uint32) {
	var st unix.Stat_t
	if unix.Stat(dir, &st) == nil && int(st.Uid) == os.Geteuid() {
		_ = unix.Chmod(dir, mode)
	}
}

// giveTo makes dir the commands' own, after openUp: git and what asks it ("dubious ownership", "error obtaining VCS status")
// work only in a folder of their own user. Without CHOWN the folder stays as it is.
func giveTo(dir string, uid, gid int) {
	var st unix.Stat_t
	if unix.Stat(dir, &st) == nil && int(st.Uid) == os.Geteuid() {
		_ = unix.Chown(dir, uid, gid)
	}
}

// giveContent makes all that lies below dir the commands' own: what the engine has copied from the image is root's there, or
// belongs to a user of the image. No command runs yet, so that nobody can exchange an entry meanwhile.
func giveContent(dir string, uid, gid int) error {
	if os.Geteuid() != 0 {
		return nil // nothing can be given away, and everything was made by this process's user
	}
	dir, err := filepath.EvalSymlinks(dir) // the engine follows a link of the image, and a walk does not
	if err != nil {
		return fmt.Errorf("find the workspace: %w", err)
	}
	var folders []string
	err = filepath.WalkDir(dir, func(path string, entry fs.DirEntry, err error) error {
		if errors.Is(err, fs.ErrPermission) {
			return nil // not even its owner may read the folder; its owner-to-be can change that
		}
		if err != nil || path == dir {
			return err
		}
		if !entry.IsDir() {
			return os.Lchown(path, uid, gid)
		}
		folders = append(folders, path)
		// Without DAC_OVERRIDE only the owner of a private folder can read it: it is this process's until its content is done.
		return os.Lchown(path, os.Geteuid(), gid)
	})
	for _, path := range slices.Backward(folders) {
		if err == nil {
			err = os.Lchown(path, uid, gid)
		}
	}
	if err != nil {
		return fmt.Errorf("give the files of the workspace to the job's user: %w", err)
	}
	return nil
}
