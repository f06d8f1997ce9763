//go:build linux

package main

import (
	"io"

	"golang.org/x/sys/unix"
)

// stdin and stdout are the worker's connection, used by plain system calls: os.Stdout would end the
// process at a closed pipe. Either may be a socket that somebody has made non-blocking.
type (
	stdin  struct{}
	stdout struct{}
)

func (stdin) Read(p []byte) (int, error) {
	for {
		n, err := unix.Read(0, p)
		switch {
		case err == unix.EINTR:
		case err == unix.EAGAIN:
			wait(0, unix.POLLIN)
		case err != nil:
			return 0, err
		case n == 0:
			return 0, io.EOF
		default:
			return n, nil
		}
	}
}

func (stdout) Write(p []byte) (int, error) {
	sent := 0
	for sent < len(p) {
		n, err := unix.Write(1, p[sent:])
		switch err {
		case nil:
			sent += n
		case unix.EINTR:
		case unix.EAGAIN:
			wait(1, unix.POLLOUT)
		default:
			return sent, err
		}
	}
	return sent, nil
}

func wait(fd int32, events int16) {
	_, _ = unix.Poll([]unix.PollFd{{Fd: fd, Events: events}}, -1)
}
