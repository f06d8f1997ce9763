//go:build linux

package main

import (
	"bufio"
	"errors"
	"io"
	"strconv"
	"time"

	"golang.org/x/sys/unix"

	"slipway/container/supervisor/wire"
)

// deleteTime bounds one Delete.
const deleteTime = 5 * time.Minute

var errCanceled = errors.New("canceled")

// fileOp answers one request about the workspace. It runs with the rights of the steps' user; what
// it writes to s before it returns is data, what it returns goes into End: a status, and result.
type fileOp func(t tree, s *wire.Stream, d *wire.Dec) (result []byte, err error)

var fileOps = map[wire.Kind]fileOp{
	wire.KindStat:     opStat,
	wire.KindRead:     opRead,
	wire.KindWrite:    opWrite,
	wire.KindList:     opList,
	wire.KindMkdir:    opMkdir,
	wire.KindDelete:   opDelete,
	wire.KindWalk:     opWalk,
	wire.KindHash:     opHash,
	wire.KindReadAll:  opReadAll,
	wire.KindWriteAll: opWriteAll,
}

// failure is an error with the path that it is about.
type failure struct {
	path string
	err  error
}

func (f *failure) Error() string { return f.path + ": " + f.err.Error() }

func at(path string, err error) error {
	if err == nil {
		return nil
	}
	return &failure{path, err}
}

// slots bounds how many operations run at once: each holds a thread. Those that may wait for the
// worker have slots of their own, since the worker may need one of the others before it goes on.
func (b *box) slots(kind wire.Kind) chan struct{} {
	switch kind {
	case wire.KindStat, wire.KindMkdir, wire.KindDelete:
		return b.quickOps
	default:
		return b.bulkOps
	}
}

// fileOp runs op to its End.
func (b *box) fileOp(s *wire.Stream, kind wire.Kind, op fileOp, params []byte) {
	slots := b.slots(kind)
	slots <- struct{}{}
	defer func() { <-slots }()
	over := make(chan struct{})
	defer close(over)
	go func() {
		select {
		case <-s.Canceled():
			s.Fail(errCanceled)
		case <-over:
		}
	}()
	var result []byte
	err := asUser(b.set.UID, b.set.GID, func() error {
		var err error
		result, err = op(b.root, s, wire.NewDec(params))
		return err
	})
	status := wire.Status{}
	if f, ok := err.(*failure); ok {
		status = statusOf(f.path, f.err)
	} else if err != nil {
		status = statusOf("workspace", err)
	}
	var e wire.Enc
	status.Put(&e)
	e.Raw(result)
	_ = s.End(e.B)
}

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
	buf := buffers.Get().(*[wire.MaxData]byte)
	defer buffers.Put(buf)
	copied := int64(0)
	for {
		n, err := readFD(fd, buf[:])
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

// answer buffers records on their way to the worker.
func answer(s *wire.Stream) *bufio.Writer { return bufio.NewWriterSize(s, wire.MaxData) }
