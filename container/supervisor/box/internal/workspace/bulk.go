//go:build linux

package workspace

import (
	"bufio"
	"crypto/md5"
	"crypto/sha256"
	"io"

	"golang.org/x/sys/unix"

	"slipway/container/supervisor/internal/wire"
)

// folders keeps the folder of the last file open: the next file mostly lies in the same one.
type folders struct {
	t    tree
	make bool
	path string
	fd   int
}

func newFolders(t tree) *folders { return &folders{t: t, fd: -1} }

// get opens the folder of path. The descriptor stays valid until the next get.
func (f *folders) get(path string) (int, string, error) {
	folder, base, err := split(path)
	if err != nil {
		return -1, "", err
	}
	if f.fd >= 0 && f.path == folder {
		return f.fd, base, nil
	}
	f.close()
	if f.make {
		f.fd, err = f.t.makeDirs(folder, 0o755)
		err = parentError(err)
	} else {
		f.fd, err = f.t.openDir(folder)
	}
	if err != nil {
		f.fd = -1
		return -1, "", err
	}
	f.path = folder
	return f.fd, base, nil
}

func (f *folders) close() {
	if f.fd >= 0 {
		_ = unix.Close(f.fd)
		f.fd = -1
	}
}

// eachPath calls fn for every path that the worker sends.
func eachPath(s *wire.Stream, fn func(path string) error) error {
	in := bufio.NewReaderSize(s, wire.MaxData)
	var buf []byte
	for {
		d, err := wire.ReadRecord(in, &buf)
		if err == io.EOF {
			return nil
		}
		if err != nil {
			return err
		}
		path := d.Str()
		if err := d.Err(); err != nil {
			return err
		}
		if err := fn(path); err != nil {
			return err
		}
	}
}

func opHash(t tree, s *wire.Stream, _ *wire.Dec) ([]byte, error) {
	w := answer(s)
	dirs := newFolders(t)
	defer dirs.close()
	buf := make([]byte, 128<<10)
	md, sh := md5.New(), sha256.New()
	err := eachPath(s, func(path string) error {
		md.Reset()
		sh.Reset()
		size, err := hashFile(dirs, path, buf, md, sh)
		var e wire.Enc
		statusOf(path, err).Put(&e)
		e.Int(size)
		e.Raw(md.Sum(nil))
		e.Raw(sh.Sum(nil))
		return wire.WriteRecord(w, &e)
	})
	if err != nil {
		return nil, err
	}
	return nil, w.Flush()
}

func hashFile(dirs *folders, path string, buf []byte, to ...io.Writer) (int64, error) {
	dir, base, err := dirs.get(path)
	if err != nil {
		return 0, err
	}
	fd, _, err := openFile(dir, base)
	if err != nil {
		return 0, err
	}
	defer unix.Close(fd)
	var size int64
	for {
		n, err := readFD(fd, buf)
		if n == 0 || err != nil {
			return size, err
		}
		size += int64(n)
		for _, w := range to {
			_, _ = w.Write(buf[:n]) // a hash takes everything
		}
	}
}

// opReadAll answers each path with a record (status, info), then the content in pieces (records; an empty one
// ends it), then a record (status, info) of the file as it was afterwards.
func opReadAll(t tree, s *wire.Stream, _ *wire.Dec) ([]byte, error) {
	w := answer(s)
	dirs := newFolders(t)
	defer dirs.close()
	buf := make([]byte, wire.MaxRecord)
	err := eachPath(s, func(path string) error { return readOne(w, dirs, path, buf) })
	if err != nil {
		return nil, err
	}
	return nil, w.Flush()
}

func readOne(w *bufio.Writer, dirs *folders, path string, buf []byte) error {
	var st unix.Stat_t
	fd := -1
	dir, base, err := dirs.get(path)
	if err == nil {
		fd, st, err = openFile(dir, base)
	}
	if err != nil {
		return writeInfo(w, wire.Info{Path: path, Type: 'o'}, err)
	}
	defer unix.Close(fd)
	if err := writeInfo(w, dirs.t.infoOf(path, &st), nil); err != nil {
		return err
	}
	rerr, werr := copyRecords(w, fd, st.Size, buf)
	if werr != nil {
		return werr
	}
	if err := wire.WriteRecord(w, &wire.Enc{}); err != nil {
		return err
	}
	if rerr == nil {
		rerr = unix.Fstat(fd, &st)
	}
	return writeInfo(w, dirs.t.infoOf(path, &st), rerr)
}

// copyRecords sends at most size bytes of fd.
func copyRecords(w *bufio.Writer, fd int, size int64, buf []byte) (rerr, werr error) {
	for size > 0 {
		n, err := readFD(fd, buf[:min(size, int64(len(buf)))])
		if n == 0 || err != nil {
			return err, nil
		}
		size -= int64(n)
		if err := wire.WriteRecord(w, &wire.Enc{B: buf[:n]}); err != nil {
			return nil, err
		}
	}
	return nil, nil
}
