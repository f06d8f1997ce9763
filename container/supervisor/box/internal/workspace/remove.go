//go:build linux

package workspace

import (
	"bytes"
	"encoding/binary"
	"os"
	"strconv"
	"time"

	"golang.org/x/sys/unix"

	"slipway/container/supervisor/internal/wire"
)

// Empty removes all that the folder dir holds, until the time until. It goes on after an error, and
// returns the first. progress tells that it removed or opened up something, so that another user may get further now.
func Empty(dir string, until time.Time) (progress bool, err error) {
	fd, err := openForRemoval(unix.AT_FDCWD, dir, 0)
	if err != nil {
		return false, &os.PathError{Op: "open", Path: dir, Err: err}
	}
	defer unix.Close(fd)
	r := &remover{until: until}
	err = r.empty(fd)
	return r.progress, err
}

// Remove removes path with all that it holds, until the time until. What is not there counts as removed.
func Remove(path string, until time.Time) error {
	r := &remover{until: until}
	return r.remove(unix.AT_FDCWD, path)
}

// remover empties folders with a constant number of open files, however deep they are. It never goes down
// more than one level: it moves ("lifts") what it finds there up beside the first folder. A job can make a
// tree so deep that rm, and the removal of its container, fail with "too many open files".
type remover struct {
	until   time.Time
	next    int      // for the names of lifted folders
	pending []string // lifted folders that were not looked into yet
	// progress: something was removed, lifted or opened up.
	progress bool
}

// maxPending bounds the memory of a remover. Another look finds what did not fit.
const maxPending = 4096

// remove deletes the entry base of dir with all that it holds.
func (r *remover) remove(dir int, base string) error {
	err := unix.Unlinkat(dir, base, 0)
	if err == nil || err == unix.ENOENT {
		return nil
	}
	if e := unix.Unlinkat(dir, base, unix.AT_REMOVEDIR); e == nil || e == unix.ENOENT {
		return nil
	}
	top, oerr := openForRemoval(dir, base, unix.O_NOFOLLOW)
	if noFolder(oerr) {
		return err // why a file stays
	}
	if oerr != nil {
		return oerr
	}
	err = r.empty(top)
	_ = unix.Close(top)
	if err != nil {
		return err
	}
	return unix.Unlinkat(dir, base, unix.AT_REMOVEDIR)
}

// empty deletes all that the open folder top holds. It goes on after an error, and returns the first.
func (r *remover) empty(top int) error {
	for {
		entries, err := readEntries(top)
		if err != nil {
			return err
		}
		removed, denied := 0, false
		var first error
		for _, e := range entries {
			err := r.one(top, e)
			if err == nil {
				removed++
			} else if first == nil {
				first = err
			}
			denied = denied || err == unix.EACCES
			for len(r.pending) > 0 {
				name := r.pending[len(r.pending)-1]
				r.pending = r.pending[:len(r.pending)-1]
				_ = r.folder(top, name) // what stays is an entry of top, which the next look finds
			}
		}
		if denied && openUp(top) {
			removed++ // or as good as that
		}
		r.progress = r.progress || removed > 0
		if removed == 0 {
			return first
		}
		if time.Now().After(r.until) {
			return os.ErrDeadlineExceeded
		}
	}
}

// one deletes an entry of top.
func (r *remover) one(top int, e entry) error {
	err := error(unix.ENOTDIR)
	if !e.dir {
		err = unix.Unlinkat(top, e.name, 0)
		if err == nil || err == unix.ENOENT {
			return nil
		}
	}
	ferr := r.folder(top, e.name)
	if noFolder(ferr) {
		return err // why a file stays
	}
	return ferr
}

// folder deletes a folder of top. The folders in it are lifted into top, for later.
func (r *remover) folder(top int, name string) error {
	if time.Now().After(r.until) {
		return os.ErrDeadlineExceeded
	}
	dir, err := openForRemoval(top, name, unix.O_NOFOLLOW)
	if err != nil {
		return err
	}
	err = r.lift(dir, top)
	_ = unix.Close(dir)
	if err != nil {
		return err
	}
	err = unix.Unlinkat(top, name, unix.AT_REMOVEDIR)
	if err == unix.ENOENT || err == unix.ENOTEMPTY { // it held more than one look reads, or a process still writes: the next look sees it
		return nil
	}
	return err
}

// lift deletes the files of dir and moves its folders to top. It goes on after an error, and returns the first.
func (r *remover) lift(dir, top int) error {
	entries, first := readEntries(dir)
	for _, e := range entries {
		err := r.out(dir, top, e)
		if err == unix.EACCES && openUp(dir) {
			err = r.out(dir, top, e)
		}
		if err == nil {
			r.progress = true
		} else if first == nil {
			first = err
		}
	}
	return first
}

// out deletes a file of dir, or moves a folder of it to top.
func (r *remover) out(dir, top int, e entry) error {
	if !e.dir {
		err := unix.Unlinkat(dir, e.name, 0)
		if err == nil || err == unix.ENOENT {
			return nil
		}
		if err != unix.EISDIR && err != unix.EPERM {
			return err
		}
	}
	for {
		r.next++
		fresh := ".slipway-removed-" + strconv.Itoa(r.next)
		err := rename(dir, e.name, top, fresh)
		if err == unix.EACCES && unix.Fchmodat(dir, e.name, 0o700, 0) == nil {
			// A folder that may not be written to can't be told its new parent.
			err = rename(dir, e.name, top, fresh)
		}
		switch err {
		case unix.EEXIST, unix.ENOTEMPTY:
			continue
		case unix.ENOENT:
			return nil
		case nil:
			if len(r.pending) < maxPending {
				r.pending = append(r.pending, fresh)
			}
		}
		return err
	}
}

func rename(dir int, name string, to int, fresh string) error {
	err := unix.Renameat2(dir, name, to, fresh, unix.RENAME_NOREPLACE)
	if err == unix.EINVAL || err == unix.ENOSYS { // a file system without the flag; only an empty folder would be replaced
		err = unix.Renameat(dir, name, to, fresh)
	}
	return err
}

// openUp gives the open folder fd a mode in which its owner can remove what it holds. It reports false if the mode
// was no hindrance, or belongs to somebody else. It takes nothing from the mode: others may have to remove there, too.
func openUp(fd int) bool {
	const owner = 0o700
	var st unix.Stat_t
	return unix.Fstat(fd, &st) == nil && st.Mode&owner != owner && unix.Fchmod(fd, st.Mode&0o7777|owner) == nil
}

// noFolder reports whether err is openForRemoval's of something that is no folder.
func noFolder(err error) bool { return err == unix.ENOTDIR || err == unix.ELOOP }

// openForRemoval opens a folder. If its mode forbids that, it changes the mode first. nofollow is O_NOFOLLOW or 0.
func openForRemoval(dir int, name string, nofollow int) (int, error) {
	flags := unix.O_RDONLY | unix.O_DIRECTORY | unix.O_CLOEXEC | nofollow
	fd, err := unix.Openat(dir, name, flags, 0)
	if err == unix.EACCES {
		if err := unix.Fchmodat(dir, name, 0o700, 0); err != nil {
			return -1, err
		}
		fd, err = unix.Openat(dir, name, flags, 0)
	}
	return fd, err
}

// entry is a name in a folder. dir is set if the file system says that it is a folder; it need not say so.
type entry struct {
	name string
	dir  bool
}

// readEntries reads up to a few thousand entries of an open folder, from its start.
func readEntries(fd int) ([]entry, error) {
	if _, err := unix.Seek(fd, 0, 0); err != nil {
		return nil, err
	}
	buf := wire.Alloc(wire.MaxData)
	defer wire.Free(buf)
	var entries []entry
	for len(entries) < maxPending {
		n, err := unix.Getdents(fd, buf)
		if err == unix.EINTR {
			continue
		}
		if err != nil || n <= 0 {
			return entries, err
		}
		entries = parseDirents(buf[:n], entries)
	}
	return entries, nil
}

// parseDirents reads struct linux_dirent64: inode 8, offset 8, length 2, type 1, name with a zero at its end.
func parseDirents(b []byte, entries []entry) []entry {
	const head = 19
	for len(b) > head {
		size := int(binary.NativeEndian.Uint16(b[16:]))
		if size <= head || size > len(b) {
			return entries
		}
		name := b[head:size]
		if i := bytes.IndexByte(name, 0); i >= 0 {
			name = name[:i]
		}
		if s := string(name); s != "." && s != ".." {
			entries = append(entries, entry{s, b[18] == unix.DT_DIR})
		}
		b = b[size:]
	}
	return entries
}
