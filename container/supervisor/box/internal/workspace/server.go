//go:build linux

package workspace

import (
	"bufio"
	"errors"
	"os"

	"golang.org/x/sys/unix"

	"slipway/container/supervisor/box/internal/privs"
	"slipway/container/supervisor/internal/wire"
)

// Server answers requests about one workspace, with the rights of one user. It is safe for concurrent use.
type Server struct {
	tree     tree
	dir      string
	own      bool // the folder itself is the box's
	uid, gid int
	quick    chan struct{} // a slot for each operation that waits for nobody
	bulk     chan struct{} // a slot for each of the others
}

// RootMode is the mode of the workspace's own folder: steps may run as several users.
const RootMode = 0o777

// NewServer opens the workspace. own says that the folder itself is the box's, and not somebody's who lent it.
func NewServer(dir string, uid, gid int, own bool) (*Server, error) {
	fd, err := unix.Open(dir, unix.O_PATH|unix.O_DIRECTORY|unix.O_CLOEXEC, 0)
	if err != nil {
		return nil, &os.PathError{Op: "open workspace", Path: dir, Err: err}
	}
	return &Server{
		tree: newTree(fd), dir: dir, own: own, uid: uid, gid: gid,
		quick: make(chan struct{}, maxQuick), bulk: make(chan struct{}, maxBulk),
	}, nil
}

// How many operations run at once. Each holds a thread.
const (
	maxQuick = 16
	maxBulk  = 16
)

// operation answers one request. What it writes to s before it returns is data. What it returns goes into
// End: a status, and result.
type operation func(t tree, s *wire.Stream, d *wire.Dec) (result []byte, err error)

var operations = map[wire.Kind]operation{
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

// Serves reports whether kind is an operation on files. Answer takes no other kind.
func (v *Server) Serves(kind wire.Kind) bool { return operations[kind] != nil }

// errCanceled is what waits of a stream return when the worker has canceled it.
var errCanceled = errors.New("canceled")

// Answer runs one operation to its End. It waits while too many others run.
func (v *Server) Answer(s *wire.Stream, kind wire.Kind, params []byte) {
	slots := v.slots(kind)
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
	v.OpenUp(0o700) // a mode that hinders nothing here may be what the job wants
	err := privs.AsUser(v.uid, v.gid, func() error {
		var err error
		result, err = operations[kind](v.tree, s, wire.NewDec(params))
		return err
	})
	status := wire.Status{}
	if f, ok := err.(*failure); ok {
		status = statusOf(f.path, f.err)
	} else if err != nil {
		status = statusOf("", err)
	}
	var e wire.Enc
	status.Put(&e)
	e.Raw(result)
	_ = s.End(e.B)
}

// OpenUp gives the workspace's own folder its mode back if that lacks any bit of needed: the folder belongs to the commands,
// and after "chmod 000 ." nothing in it could be saved.
func (v *Server) OpenUp(needed uint32) {
	var st unix.Stat_t
	if !v.own || unix.Fstat(v.tree.fd, &st) != nil || st.Mode&needed == needed {
		return
	}
	_ = privs.AsUser(v.uid, v.gid, func() error { return unix.Chmod(v.dir, RootMode) })
}

// slots gives operations that may wait for the worker slots of their own: the worker may need one of the
// others before it goes on.
func (v *Server) slots(kind wire.Kind) chan struct{} {
	switch kind {
	case wire.KindStat, wire.KindMkdir, wire.KindDelete:
		return v.quick
	default:
		return v.bulk
	}
}

// answer buffers records on their way to the worker.
func answer(s *wire.Stream) *bufio.Writer { return bufio.NewWriterSize(s, wire.MaxData) }
