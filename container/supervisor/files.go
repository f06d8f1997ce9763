package supervisor

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"

	"slipway/container"
	"slipway/container/supervisor/internal/wire"
)

// Files gives access to the workspace; see container.Files.
func (s *Session) Files() container.Files { return s.files }

// files implements container.Files. One request is one stream; a canceled context ends it.
type files struct{ s *Session }

var _ container.Files = files{}

// request opens a stream. finish must be called when the answer has been read, or to give up.
func (f files) request(ctx context.Context, kind wire.Kind, params func(*wire.Enc)) (*request, error) {
	if err := context.Cause(ctx); err != nil {
		return nil, err
	}
	if err := f.s.Err(); err != nil {
		return nil, err
	}
	var e wire.Enc
	if params != nil {
		params(&e)
	}
	stream, err := f.s.mux.Open(byte(kind), e.B)
	if err != nil {
		return nil, f.s.explain(err)
	}
	r := &request{Stream: stream, s: f.s, ctx: ctx}
	r.stop = context.AfterFunc(ctx, func() { r.giveUp(context.Cause(ctx)) })
	return r, nil
}

type request struct {
	*wire.Stream
	s    *Session
	ctx  context.Context
	stop func() bool
}

// giveUp tells the box to stop, and this side not to wait.
func (r *request) giveUp(err error) {
	r.Fail(err)
	_ = r.SendCancel() // a lost connection has ended the stream already
}

// finish reads what is left and returns the result after the status. before is an error of this
// side: it ends the operation early and is what finish returns, except that a failed write is
// explained by what the box says. Either way nothing of the operation goes on, unless ctx has ended.
func (r *request) finish(before error) (*wire.Dec, error) {
	defer r.stop()
	failed := before != nil && !errors.Is(before, wire.ErrEnded)
	if failed {
		_ = r.SendCancel() // a lost connection has ended the stream already
	}
	result, err := r.last()
	switch {
	case failed:
		return nil, r.s.explain(before)
	case err != nil:
		return nil, r.s.explain(err)
	}
	d := wire.NewDec(result)
	status, rest := wire.GetStatus(d), d.Rest()
	if err := d.Err(); err != nil { // an End of no bytes would be a success
		return nil, r.s.explain(err)
	}
	if err := errorOf(status); err != nil {
		if cause := context.Cause(r.ctx); cause != nil && errors.Is(err, errCanceled) {
			return nil, cause
		}
		return nil, err
	}
	if before != nil {
		return nil, fmt.Errorf("%w: its answer is too short", container.ErrBoxLost)
	}
	return wire.NewDec(rest), nil
}

// finishInfo is finish for an operation whose result describes an entry.
func (r *request) finishInfo(before error) (container.FileInfo, error) {
	d, err := r.finish(before)
	if err != nil {
		return container.FileInfo{}, err
	}
	info := fileInfo(d)
	if err := d.Err(); err != nil {
		return container.FileInfo{}, r.s.explain(err)
	}
	return info, nil
}

// last skips to the end of the stream.
func (r *request) last() ([]byte, error) {
	for {
		_, _, err := r.Next()
		if errors.Is(err, io.EOF) {
			return r.Result()
		}
		if err != nil {
			return nil, err
		}
	}
}

var errCanceled = errors.New("canceled")

// errorOf turns a status into an error that matches one of package container's, a *container.FileError if it names a path.
func errorOf(st wire.Status) error {
	kind := map[wire.Code]error{
		wire.CodeNotFound: container.ErrNotFound, wire.CodeExists: container.ErrExists,
		wire.CodeNotRegular: container.ErrNotRegular, wire.CodeTooLarge: container.ErrTooLarge,
		wire.CodePath: container.ErrPath, wire.CodePermission: container.ErrPermission,
		wire.CodeNoSpace: container.ErrNoSpace, wire.CodeUnsupported: container.ErrUnsupported,
		wire.CodeCanceled: errCanceled,
	}[st.Code]
	err := kind
	switch {
	case st.Code == wire.CodeOK:
		return nil
	case kind == nil:
		err = fmt.Errorf("box: %s", st.Message)
	case st.Message != kind.Error():
		err = fmt.Errorf("%w: %s", kind, st.Message)
	}
	if st.Path == "" {
		return err
	}
	return &container.FileError{Path: st.Path, Err: err}
}

func fileInfo(d *wire.Dec) container.FileInfo {
	i := wire.GetInfo(d)
	return container.FileInfo{
		Path: i.Path, Type: container.FileType(i.Type), Size: i.Size, Mode: i.Mode,
		ModTime: i.ModTime, ChangeTime: i.ChangeTime, Inode: i.Inode, Target: i.Target,
	}
}

// unixMode turns a Go mode into the bits of Unix.
func unixMode(m fs.FileMode) uint32 {
	mode := uint32(m.Perm())
	for bit, unix := range map[fs.FileMode]uint32{fs.ModeSetuid: 0o4000, fs.ModeSetgid: 0o2000, fs.ModeSticky: 0o1000} {
		if m&bit != 0 {
			mode |= unix
		}
	}
	return mode
}

func (f files) Stat(ctx context.Context, path string) (container.FileInfo, error) {
	r, err := f.request(ctx, wire.KindStat, func(e *wire.Enc) { e.Str(path) })
	if err != nil {
		return container.FileInfo{}, err
	}
	info, err := r.finishInfo(nil)
	if err != nil {
		return container.FileInfo{}, fmt.Errorf("stat: %w", err)
	}
	return info, nil
}

func (f files) Read(ctx context.Context, path string, w io.Writer, limit int64) (container.FileInfo, error) {
	r, err := f.request(ctx, wire.KindRead, func(e *wire.Enc) { e.Str(path); e.Int(limit) })
	if err != nil {
		return container.FileInfo{}, err
	}
	for err == nil {
		var b []byte
		if _, b, err = r.Next(); err == nil {
			_, err = w.Write(b)
		}
	}
	if errors.Is(err, io.EOF) {
		err = nil
	}
	info, err := r.finishInfo(err)
	if err != nil {
		return container.FileInfo{}, fmt.Errorf("read: %w", err)
	}
	return info, nil
}

func (f files) Write(ctx context.Context, path string, in io.Reader, mode fs.FileMode) error {
	r, err := f.request(ctx, wire.KindWrite, func(e *wire.Enc) { e.Str(path); e.Uint(uint64(unixMode(mode))) })
	if err != nil {
		return err
	}
	_, err = io.CopyBuffer(struct{ io.Writer }{r.Stream}, in, make([]byte, wire.MaxData))
	if err == nil {
		err = r.CloseWrite()
	}
	if _, err = r.finish(err); err != nil {
		return fmt.Errorf("write: %w", err)
	}
	return nil
}

// maxList bounds the paths of one List in bytes: a job may make millions of files, and the caller holds them all.
const maxList = 32 << 20

func (f files) List(ctx context.Context, path string) ([]container.FileInfo, error) {
	r, err := f.request(ctx, wire.KindList, func(e *wire.Enc) { e.Str(path) })
	if err != nil {
		return nil, err
	}
	var list []container.FileInfo
	size := 0
	err = r.infos(func(info container.FileInfo) error {
		if size += len(info.Path); size > maxList {
			return fmt.Errorf("%w: paths of more than %d bytes in one folder", container.ErrTooLarge, maxList)
		}
		list = append(list, info)
		return nil
	})
	if _, err = r.finish(err); err != nil {
		return nil, fmt.Errorf("list: %w", err)
	}
	return list, nil
}

func (f files) Mkdir(ctx context.Context, path string, mode fs.FileMode) error {
	r, err := f.request(ctx, wire.KindMkdir, func(e *wire.Enc) { e.Str(path); e.Uint(uint64(unixMode(mode))) })
	if err != nil {
		return err
	}
	if _, err = r.finish(nil); err != nil {
		return fmt.Errorf("make folder: %w", err)
	}
	return nil
}

func (f files) Delete(ctx context.Context, path string) error {
	r, err := f.request(ctx, wire.KindDelete, func(e *wire.Enc) { e.Str(path) })
	if err != nil {
		return err
	}
	if _, err = r.finish(nil); err != nil {
		return fmt.Errorf("delete: %w", err)
	}
	return nil
}

func (f files) Walk(ctx context.Context, fn func(container.FileInfo) error) error {
	r, err := f.request(ctx, wire.KindWalk, nil)
	if err != nil {
		return err
	}
	_, err = r.finish(r.infos(fn))
	return err
}

// infos calls fn for every record of an entry.
func (r *request) infos(fn func(container.FileInfo) error) error {
	in := bufio.NewReaderSize(r, wire.MaxData)
	var buf []byte
	for {
		d, err := readRecord(in, &buf)
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			return err
		}
		status := wire.GetStatus(d)
		info := fileInfo(d)
		if err := d.Err(); err != nil {
			return err
		}
		info.Err = errorOf(status)
		if err := fn(info); err != nil {
			return err
		}
	}
}

// readRecord reads a record of an answer. Its error is io.EOF at the end, and wire.ErrEnded within a record: finish says
// why the box went no further.
func readRecord(in *bufio.Reader, buf *[]byte) (*wire.Dec, error) {
	d, err := wire.ReadRecord(in, buf)
	if errors.Is(err, io.ErrUnexpectedEOF) {
		err = wire.ErrEnded
	}
	return d, err
}
