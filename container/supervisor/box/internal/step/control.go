//go:build linux

package step

import (
	"io"
	"os"

	"golang.org/x/sys/unix"

	"slipway/container/supervisor/internal/wire"
)

// controlFD is the step process's end of its socket to the box. The box sends Open with the command and
// three descriptors, Stop, and Cancel. The step process answers each Open with one End. Before that it may send EOF:
// the leader has ended and others live on. The box answers with EOF when they print no more.
const controlFD = 3

// fdReader reads a socket, and collects the descriptors that come along.
type fdReader struct {
	fd  int
	fds []int
}

func (r *fdReader) Read(p []byte) (int, error) {
	oob := make([]byte, unix.CmsgSpace(3*4))
	for {
		n, oobn, _, _, err := unix.Recvmsg(r.fd, p, oob, unix.MSG_CMSG_CLOEXEC)
		if err == unix.EINTR {
			continue
		}
		if err != nil {
			return 0, err
		}
		if oobn > 0 {
			r.collect(oob[:oobn])
		}
		if n == 0 {
			return 0, io.EOF
		}
		return n, nil
	}
}

func (r *fdReader) collect(oob []byte) {
	messages, err := unix.ParseSocketControlMessage(oob)
	if err != nil {
		return
	}
	for _, m := range messages {
		if fds, err := unix.ParseUnixRights(&m); err == nil {
			r.fds = append(r.fds, fds...)
		}
	}
}

// take returns the descriptors received since the last call. The caller closes them.
func (r *fdReader) take() []int {
	fds := r.fds
	r.fds = nil
	return fds
}

// sendFDs writes b to the socket f. The descriptors travel with the first byte.
func sendFDs(f *os.File, b []byte, fds ...int) error {
	conn, err := f.SyscallConn()
	if err != nil {
		return err
	}
	var oob []byte
	if len(fds) > 0 {
		oob = unix.UnixRights(fds...)
	}
	var failed error
	err = conn.Write(func(fd uintptr) bool {
		for len(b) > 0 {
			n, err := unix.SendmsgN(int(fd), b, oob, nil, unix.MSG_NOSIGNAL)
			switch err {
			case nil:
				b, oob = b[n:], nil
			case unix.EINTR:
			case unix.EAGAIN:
				return false
			default:
				failed = err
				return true
			}
		}
		return true
	})
	if failed != nil {
		return failed
	}
	return err
}

// send writes a frame to the box.
func send(fd int, t wire.Type, payload []byte) error {
	b := wire.AppendFrame(nil, t, 0, payload)
	for len(b) > 0 {
		n, err := unix.Write(fd, b)
		if err == unix.EINTR {
			continue
		}
		if err != nil {
			return err
		}
		b = b[n:]
	}
	return nil
}
