//go:build linux

package workspace

import (
	"bufio"
	"io"
	"io/fs"
	"net"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"slipway/container/supervisor/box/internal/privs"
	"slipway/container/supervisor/internal/wire"
	"slipway/test/eventually"
)

// The commands' user: another one than this process's, if that can be.
const jobUID, jobGID = 54321, 54322

// rig is a server on a folder, and the worker's end of a connection to it.
type rig struct {
	t      *testing.T
	dir    string // the workspace
	server *Server
	worker *wire.Mux
}

func setup(t *testing.T) *rig {
	t.Helper()
	root := t.TempDir()
	for d := root; d != os.TempDir() && d != "/"; d = filepath.Dir(d) {
		if err := os.Chmod(d, 0o755); err != nil {
			t.Fatal(err)
		}
	}
	dir := filepath.Join(root, "work")
	t.Cleanup(func() { reopen(dir) })
	uid, gid := os.Geteuid(), os.Getegid()
	if err := os.Mkdir(dir, 0o755); err != nil {
		t.Fatal(err)
	}
	if uid == 0 {
		uid, gid = jobUID, jobGID
		if err := os.Chown(dir, uid, gid); err != nil {
			t.Fatal(err)
		}
	}
	server, err := NewServer(dir, uid, gid, true)
	if err != nil {
		t.Fatal(err)
	}
	ours, theirs := net.Pipe()
	r := &rig{t: t, dir: dir, server: server, worker: wire.NewMux(ours)}
	box := wire.NewMux(theirs)
	done := make(chan struct{}, 2)
	go func() { defer func() { done <- struct{}{} }(); pump(theirs, box, r.accept) }()
	go func() { defer func() { done <- struct{}{} }(); pump(ours, r.worker, nil) }()
	t.Cleanup(func() {
		_, _ = ours.Close(), theirs.Close()
		box.Fail(io.ErrClosedPipe)
		r.worker.Fail(io.ErrClosedPipe)
		<-done
		<-done
		_ = unix.Close(server.tree.fd)
	})
	return r
}

// reopen lets the owner of the folders remove what is in them. Root may anyway, a plain user may not.
func reopen(dir string) {
	_ = filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
		if err == nil && d.IsDir() {
			_ = os.Chmod(path, 0o700)
		}
		return nil // what can't be opened fails the removal, which says so
	})
}

// pump hands the frames of a connection on, as the loops of box and session do.
func pump(conn io.Reader, m *wire.Mux, accept func(*wire.Mux, wire.Frame) error) {
	for {
		f, err := wire.ReadFrame(conn, wire.Alloc)
		if err != nil {
			m.Fail(err)
			return
		}
		if f.Type == wire.Open && accept != nil {
			err = accept(m, f)
		} else {
			err = m.Dispatch(f)
		}
		if err != nil {
			m.Fail(err)
			return
		}
	}
}

func (r *rig) accept(m *wire.Mux, f wire.Frame) error {
	s, err := m.Accept(f.ID)
	if err == nil {
		go r.server.Answer(s, wire.Kind(f.Payload[0]), f.Payload[1:])
	}
	return err
}

// request is one operation under way.
type request struct {
	*wire.Stream
	t *testing.T
}

func (r *rig) open(kind wire.Kind, params func(*wire.Enc)) request {
	r.t.Helper()
	var e wire.Enc
	if params != nil {
		params(&e)
	}
	s, err := r.worker.Open(byte(kind), e.B)
	if err != nil {
		r.t.Fatalf("open stream: %v", err)
	}
	return request{s, r.t}
}

// end reads the stream to its end: its data, status and result.
func (q request) end() (data []byte, st wire.Status, result *wire.Dec) {
	q.t.Helper()
	data, err := io.ReadAll(q)
	if err != nil {
		q.t.Fatalf("read stream: %v", err)
	}
	b, err := q.Result()
	if err != nil {
		q.t.Fatalf("result of stream: %v", err)
	}
	d := wire.NewDec(b)
	return data, wire.GetStatus(d), d
}

// call runs an operation that reads nothing.
func (r *rig) call(kind wire.Kind, params func(*wire.Enc)) ([]byte, wire.Status, *wire.Dec) {
	r.t.Helper()
	return r.open(kind, params).end()
}

func path(p string) func(*wire.Enc) { return func(e *wire.Enc) { e.Str(p) } }

func pathMode(p string, mode uint32) func(*wire.Enc) {
	return func(e *wire.Enc) { e.Str(p); e.Uint(uint64(mode)) }
}

// write puts content into a file by the operation.
func (r *rig) write(p, content string, mode uint32) wire.Status {
	r.t.Helper()
	q := r.open(wire.KindWrite, pathMode(p, mode))
	if _, err := q.Write([]byte(content)); err == nil {
		_ = q.CloseWrite()
	}
	_, st, _ := q.end()
	return st
}

// records takes the answer of a bulk operation apart.
func records(t *testing.T, data []byte, fn func(*wire.Dec)) {
	t.Helper()
	in := bufio.NewReader(strings.NewReader(string(data)))
	var buf []byte
	for {
		d, err := wire.ReadRecord(in, &buf)
		if err == io.EOF {
			return
		}
		if err != nil {
			t.Fatalf("read record: %v", err)
		}
		fn(d)
	}
}

// asUser calls fn with the rights of the commands' user.
func (r *rig) asUser(fn func() error) error { return privs.AsUser(r.server.uid, r.server.gid, fn) }

// do runs a script as the commands' user in the workspace, and fails t if it does.
func (r *rig) do(fn func(dir string) error) {
	r.t.Helper()
	if err := fn(r.dir); err != nil {
		r.t.Fatal(err)
	}
}

// within fails t if fn takes longer than something that hangs.
func within(t *testing.T, what string, fn func()) {
	t.Helper()
	done := make(chan struct{})
	go func() { defer close(done); fn() }()
	select {
	case <-done:
	case <-time.After(eventually.Patience):
		t.Fatalf("%s: not over after %v", what, eventually.Patience)
	}
}

// emptied is Empty without its progress.
func emptied(dir string, until time.Time) error {
	_, err := Empty(dir, until)
	return err
}
