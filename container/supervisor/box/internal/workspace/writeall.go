//go:build linux

package workspace

import (
	"bufio"
	"io"

	"golang.org/x/sys/unix"

	"slipway/container/supervisor/internal/wire"
)

// writer makes the entries of one opWriteAll.
type writer struct {
	in    *bufio.Reader
	out   *bufio.Writer
	dirs  *folders
	buf   []byte
	later []lateFolder
}

// lateFolder gets its mode and time when all is written: before, it may have to be writable, and every
// new file in it changes its time.
type lateFolder struct {
	index uint64
	entry wire.Entry
}

// opWriteAll reads entries, each followed by its content, and answers each with a record (index, status, info). A
// folder is answered at the end. The first error ends it.
func opWriteAll(t tree, s *wire.Stream, _ *wire.Dec) ([]byte, error) {
	w := &writer{
		in: bufio.NewReaderSize(s, wire.MaxData), out: answer(s), dirs: newFolders(t),
		buf: make([]byte, wire.MaxData),
	}
	w.dirs.make = true
	defer w.dirs.close()
	var rec []byte
	for index := uint64(0); ; index++ {
		d, err := wire.ReadRecord(w.in, &rec)
		if err == io.EOF {
			break
		}
		if err != nil {
			return nil, err
		}
		entry := wire.GetEntry(d)
		if err := d.Err(); err != nil {
			return nil, err
		}
		if err := w.one(index, entry); err != nil {
			return nil, at(entry.Path, err)
		}
	}
	for i := len(w.later) - 1; i >= 0; i-- { // what lies deeper comes first
		if err := w.finishFolder(w.later[i]); err != nil {
			return nil, at(w.later[i].entry.Path, err)
		}
	}
	return nil, w.out.Flush()
}

func (w *writer) one(index uint64, n wire.Entry) error {
	dir, base, err := w.dirs.get(n.Path)
	if err != nil {
		return err
	}
	switch n.Type {
	case 'd':
		if err := makeFolder(dir, base, n.Mode|0o700); err != nil {
			return err
		}
		w.later = append(w.later, lateFolder{index, n})
		return nil
	case 'l':
		err = replace(dir, base, func() error { return unix.Symlinkat(n.Target, dir, base) })
	case 'f':
		err = w.file(dir, base, n)
	default:
		err = &pathError{wire.CodeUnsupported, "neither file, folder nor link"}
	}
	if err == nil {
		err = setTime(dir, base, n)
	}
	if err != nil {
		return err
	}
	return w.report(index, dir, base, n.Path)
}

func (w *writer) report(index uint64, dir int, base, path string) error {
	info, err := w.dirs.t.statAt(dir, base, path)
	if err != nil {
		return err
	}
	var e wire.Enc
	e.Uint(index)
	info.Put(&e)
	return wire.WriteRecord(w.out, &e)
}

// replace calls create, and once more without what stood in its way, unless that is a folder.
func replace(dir int, base string, create func() error) error {
	err := create()
	if err != unix.EEXIST {
		return err
	}
	if err := unix.Unlinkat(dir, base, 0); err != nil && err != unix.ENOENT {
		return err
	}
	return create()
}

func makeFolder(dir int, base string, mode uint32) error {
	err := unix.Mkdirat(dir, base, mode)
	if err != unix.EEXIST {
		return err
	}
	fd, err := unix.Openat(dir, base, unix.O_PATH|unix.O_DIRECTORY|unix.O_NOFOLLOW|unix.O_CLOEXEC, 0)
	if err == nil {
		return unix.Close(fd)
	}
	if err != unix.ENOTDIR && err != unix.ELOOP {
		return err
	}
	return replace(dir, base, func() error { return unix.Mkdirat(dir, base, mode) })
}

func (w *writer) file(dir int, base string, n wire.Entry) error {
	const flags = unix.O_WRONLY | unix.O_CREAT | unix.O_EXCL | unix.O_NOFOLLOW | unix.O_CLOEXEC
	fd := -1
	err := replace(dir, base, func() (err error) {
		fd, err = unix.Openat(dir, base, flags, n.Mode&0o777)
		return err
	})
	if err != nil {
		return err
	}
	err = w.content(fd, n.Size)
	if err == nil && n.Mode&0o7000 != 0 { // after the content: a write takes setuid away
		err = unix.Fchmod(fd, n.Mode)
	}
	if e := unix.Close(fd); err == nil {
		err = e
	}
	return err
}

func (w *writer) content(fd int, size int64) error {
	for size > 0 {
		n, err := w.in.Read(w.buf[:min(size, int64(len(w.buf)))])
		if err == io.EOF {
			return io.ErrUnexpectedEOF
		}
		if err != nil {
			return err
		}
		if err := writeFD(fd, w.buf[:n]); err != nil {
			return err
		}
		size -= int64(n)
	}
	return nil
}

func setTime(dir int, base string, n wire.Entry) error {
	if !n.HasTime {
		return nil
	}
	ts := unix.NsecToTimespec(n.ModTime)
	return unix.UtimesNanoAt(dir, base, []unix.Timespec{ts, ts}, unix.AT_SYMLINK_NOFOLLOW)
}

func (w *writer) finishFolder(l lateFolder) error {
	n := l.entry
	dir, base, err := w.dirs.get(n.Path)
	if err != nil {
		return err
	}
	fd, err := unix.Openat(dir, base, unix.O_RDONLY|unix.O_DIRECTORY|unix.O_NOFOLLOW|unix.O_CLOEXEC, 0)
	if err != nil {
		return err
	}
	err = unix.Fchmod(fd, n.Mode)
	_ = unix.Close(fd)
	if err == nil {
		err = setTime(dir, base, n)
	}
	if err != nil {
		return err
	}
	return w.report(l.index, dir, base, n.Path)
}
