//go:build linux

package step

import (
	"bytes"
	"errors"
	"os"
	"strconv"
	"strings"
	"syscall"

	"golang.org/x/sys/unix"

	"slipway/container/supervisor/box/internal/privs"
	"slipway/container/supervisor/internal/wire"
)

// Exit codes of a command that could not be started. Shells use the same.
const (
	CodeNotExecutable = 126
	CodeNotFound      = 127
)

// launch starts the leader with the given stdin, stdout and stderr. reason is empty if it runs, else it says why
// not, and code is the exit code for that.
func launch(cmd wire.Command, fds []int) (pid, code int, reason string) {
	sys := &syscall.SysProcAttr{Setsid: true, Pdeathsig: syscall.SIGKILL}
	switch {
	case os.Geteuid() == 0:
		sys.Credential = &syscall.Credential{Uid: uint32(cmd.UID), Gid: uint32(cmd.GID)}
	case cmd.UID != os.Geteuid() || cmd.GID != os.Getegid():
		return 0, CodeNotExecutable, "the supervisor runs without privileges, so that it can't change the user"
	}
	path := ""
	err := privs.AsUser(cmd.UID, cmd.GID, func() error {
		path, code, reason = resolve(cmd)
		return nil
	})
	if err != nil {
		return 0, CodeNotExecutable, "change the user: " + err.Error()
	}
	if reason != "" {
		return 0, code, reason
	}
	pid, err = syscall.ForkExec(path, cmd.Args, &syscall.ProcAttr{
		Dir: cmd.Dir, Env: cmd.Env, Sys: sys,
		Files: []uintptr{uintptr(fds[0]), uintptr(fds[1]), uintptr(fds[2])},
	})
	switch err {
	case nil:
		return pid, 0, ""
	case syscall.ENOENT: // the file exists, so that its interpreter (first line) or its loader is missing
		return 0, CodeNotFound, cmd.Args[0] + ": " + missing(Join(cmd.Dir, path), cmd)
	case syscall.ENOEXEC:
		return 0, CodeNotExecutable, cmd.Args[0] + ": neither a program for this machine nor a script: its first line does not name an interpreter (#!/bin/sh)"
	default:
		return 0, CodeNotExecutable, cmd.Args[0] + ": " + err.Error()
	}
}

// missing says what a program that is there lacks to run.
func missing(path string, cmd wire.Command) (text string) {
	text = "its loader was not found: it is built for another C library than the image has"
	_ = privs.AsUser(cmd.UID, cmd.GID, func() error {
		fd, err := unix.Open(path, unix.O_RDONLY|unix.O_CLOEXEC|unix.O_NONBLOCK, 0)
		if err != nil {
			return err
		}
		defer unix.Close(fd)
		head := make([]byte, maxFirstLine)
		n, err := unix.Read(fd, head)
		if err != nil {
			return err
		}
		if line, ok := bytes.CutPrefix(head[:n], []byte("#!")); ok {
			line, _, _ = bytes.Cut(line, []byte("\n"))
			name, _, _ := bytes.Cut(bytes.Trim(line, " \t"), []byte(" "))
			text = "its interpreter was not found: " + strconv.Quote(string(name)) + ", which its first line names"
		}
		return nil
	})
	return text
}

// maxFirstLine is how much of a script's first line the kernel reads.
const maxFirstLine = 256

// resolve checks the folder and finds the program, with the rights of the command's user.
func resolve(cmd wire.Command) (path string, code int, reason string) {
	var st unix.Stat_t
	err := unix.Stat(cmd.Dir, &st)
	if err == nil && st.Mode&unix.S_IFMT != unix.S_IFDIR {
		err = errNoFolder
	}
	if err == nil {
		err = unix.Stat(cmd.Dir+"/.", &st) // fails where the user may not enter: the kernel would blame the program for it
	}
	if err != nil {
		return "", CodeNotExecutable, "working folder " + cmd.Dir + ": " + err.Error()
	}
	name := cmd.Args[0]
	if strings.Contains(name, "/") {
		err := executable(Join(cmd.Dir, name))
		if err == unix.ENOENT || err == unix.ENOTDIR {
			return "", CodeNotFound, name + ": not found"
		}
		if err != nil {
			return "", CodeNotExecutable, name + ": " + err.Error()
		}
		return name, 0, ""
	}
	denied := false
	for _, dir := range strings.Split(lookupEnv(cmd.Env, "PATH"), ":") {
		path := Join(Join(cmd.Dir, dir), name)
		switch err := executable(path); err {
		case nil:
			return path, 0, ""
		case errNotExecutable: // of a file that exists; a folder of PATH that is closed to this user is skipped
			denied = true
		}
	}
	if denied {
		return "", CodeNotExecutable, name + ": permission denied"
	}
	return "", CodeNotFound, name + ": not found in PATH"
}

// executable returns nil for a program, the kernel's error for a path that can't be reached, else errNotExecutable.
func executable(path string) error {
	var st unix.Stat_t
	if err := unix.Stat(path, &st); err != nil {
		return err
	}
	if st.Mode&unix.S_IFMT != unix.S_IFREG || st.Mode&0o111 == 0 {
		return errNotExecutable
	}
	return nil
}

var (
	errNotExecutable = errors.New("permission denied")
	errNoFolder      = errors.New("not a folder")
)

// Join returns name as seen from dir. An absolute name stays as it is, an empty one is dir.
func Join(dir, name string) string {
	if strings.HasPrefix(name, "/") {
		return name
	}
	if name == "" {
		return dir
	}
	return dir + "/" + name
}

func lookupEnv(env []string, key string) string {
	for _, kv := range env {
		if v, ok := strings.CutPrefix(kv, key+"="); ok {
			return v
		}
	}
	return ""
}
