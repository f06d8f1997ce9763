//go:build linux

package workspace

import (
	"io"
	"strconv"
	"time"

	"golang.org/x/sys/unix"

	"slipway/container/supervisor/internal/wire"
)

// deleteTime bounds one Delete.
const deleteTime = 5 * time.Minute

func encodeInfo(info wire.Info) []byte {
	var e wire.Enc
	info.Put(&e)
	return e.B
}

func opStat(t tree, _ *wire.Stream, d *wire.Dec) ([]byte, error) {
	path := d.Str()
	if path == "." {
		info, err := t.statAt(t.fd, ".", ".")
		return encodeInfo(info), at(path, err)
	}
	dir, base, err := t.parent(path)
	if err != nil {
		return nil, at(path, err)
	}
	defer unix.Close(dir)
	info, err := t.statAt(dir, base, path)
	return encodeInfo(info), at(path, err)
}

func opRead(t tree, s *wire.Stream, d *wire.Dec) ([]byte, error) {
	path, limit := d.Str(), d.Int()
	dir, base, err := t.parent(path)
	if err != nil {
		return nil, at(path, err)
	}
	fd, st, err := openFile(dir, base)
	_ = unix.Close(dir)
	if err != nil {
		return nil, at(path, err)
	}
	defer unix.Close(fd)
	tooLarge := &pathError{wire.CodeTooLarge, "larger than " + strconv.FormatInt(limit, 10) + " bytes"}
	if limit > 0 && st.Size > limit {
		return nil, at(path, tooLarge)
	}
	buf := wire.Alloc(wire.MaxData)
	defer wire.Free(buf)
	copied := int64(0)
	for {
		n, err := readFD(fd, buf)
		if n == 0 || err != nil {
			if err == nil {
				err = unix.Fstat(fd, &st)
			}
			info := t.infoOf(path, &st)
			info.Size = copied
			return encodeInfo(info), at(path, err)
		}
		copied += int64(n)
		if limit > 0 && copied > limit { // it grew meanwhile
			return nil, at(path, tooLarge)
		}
		if _, err := s.Write(buf[:n]); err != nil {
			return nil, at(path, err)
		}
	}
}

func opWrite(t tree, s *wire.Stream, d *wire.Dec) ([]byte, error) {
	path, mode := d.Str(), uint32(d.Uint())
	folder, base, err := split(path)
	if err != nil {
		return nil, at(path, err)
	}
	dir, err := t.makeDirs(folder, 0o755)
	if err != nil {
		return nil, at(path, parentError(err))
	}
	defer unix.Close(dir)
	temp, fd, err := createTemp(dir, mode)
	if err != nil {
		return nil, at(path, err)
	}
	err = writeAtomically(s, dir, fd, temp, base, mode)
	if err != nil {
		_ = unix.Unlinkat(dir, temp, 0)
	}
	return nil, at(path, err)
}

// parentError says of a missing folder why it could not be made: where a file stands none can be.
func parentError(err error) error {
	if err == unix.ENOTDIR {
		return unix.EEXIST
	}
	return err
}

func writeAtomically(s *wire.Stream, dir, fd int, temp, base string, mode uint32) error {
	err := copyIn(s, fd)
	if err == nil && mode&0o7000 != 0 {
		err = unix.Fchmod(fd, mode)
	}
	if e := unix.Close(fd); err == nil {
		err = e
	}
	if err != nil {
		return err
	}
	return unix.Renameat(dir, temp, dir, base)
}

func copyIn(s *wire.Stream, fd int) error {
	for {
		_, b, err := s.Next()
		if err == io.EOF {
			return nil
		}
		if err != nil {
			return err
		}
		if err := writeFD(fd, b); err != nil {
			return err
		}
	}
}

// createTemp makes a new file beside the one that it will become.
func createTemp(dir int, mode uint32) (string, int, error) {
	const flags = unix.O_WRONLY | unix.O_CREAT | unix.O_EXCL | unix.O_NOFOLLOW | unix.O_CLOEXEC
	for i := 0; ; i++ {
		name := ".slipway-" + strconv.FormatInt(time.Now().UnixNano(), 36) + ".tmp"
		fd, err := unix.Openat(dir, name, flags, mode&0o777)
		if err != unix.EEXIST || i > 100 {
			return name, fd, err
		}
	}
}

func opMkdir(t tree, _ *wire.Stream, d *wire.Dec) ([]byte, error) {
	path, mode := d.Str(), uint32(d.Uint())
	if err := checkPath(path); err != nil {
		return nil, at(path, err)
	}
	fd, err := t.makeDirs(path, mode)
	if err != nil {
		return nil, at(path, parentError(err))
	}
	_ = unix.Close(fd)
	return nil, nil
}

func opDelete(t tree, _ *wire.Stream, d *wire.Dec) ([]byte, error) {
	path := d.Str()
	dir, base, err := t.parent(path)
	if err == unix.ENOENT || err == unix.ENOTDIR {
		return nil, nil
	}
	if err != nil {
		return nil, at(path, err)
	}
	defer unix.Close(dir)
	r := &remover{until: time.Now().Add(deleteTime)}
	return nil, at(path, r.remove(dir, base))
}

func readFD(fd int, p []byte) (int, error) {
	for {
		n, err := unix.Read(fd, p)
		if err != unix.EINTR {
			return max(n, 0), err
		}
	}
}

func writeFD(fd int, p []byte) error {
	for len(p) > 0 {
		n, err := unix.Write(fd, p)
		if err == unix.EINTR {
			continue
		}
		if err != nil {
			return err
		}
		p = p[n:]
	}
	return nil
}
