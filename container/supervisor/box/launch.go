//go:build linux

package main

import (
	"errors"
	"os"
	"strings"
	"syscall"

	"golang.org/x/sys/unix"

	"slipway/container/supervisor/wire"
)

// Exit codes for a program that could not be started, as shells use them.
const (
	codeNotExecutable = 126
	codeNotFound      = 127
)

// launch starts the leader with the given stdin, stdout and stderr. reason is empty if it runs.
func launch(cmd wire.Command, fds []int) (pid, code int, reason string) {
	sys := &syscall.SysProcAttr{Setsid: true, Pdeathsig: syscall.SIGKILL}
	switch {
	case os.Geteuid() == 0:
		sys.Credential = &syscall.Credential{Uid: uint32(cmd.UID), Gid: uint32(cmd.GID)}
	case cmd.UID != os.Geteuid() || cmd.GID != os.Getegid():
		return 0, codeNotExecutable, "the supervisor is not privileged and can't change the user"
	}
	path := ""
	err := asUser(cmd.UID, cmd.GID, func() error {
		path, code, reason = resolve(cmd)
		return nil
	})
	if err != nil {
		return 0, codeNotExecutable, "change the user: " + err.Error()
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
	case syscall.ENOENT: // the file is there, so it is what it names in its first line, or its loader
		return 0, codeNotFound, cmd.Args[0] + ": its interpreter was not found"
	default:
		return 0, codeNotExecutable, cmd.Args[0] + ": " + err.Error()
	}
}

// resolve checks the folder and finds the program, with the rights of the command's user.
func resolve(cmd wire.Command) (path string, code int, reason string) {
	var st unix.Stat_t
	if err := unix.Stat(cmd.Dir, &st); err != nil {
		return "", codeNotExecutable, "working folder " + cmd.Dir + ": " + err.Error()
	}
	if st.Mode&unix.S_IFMT != unix.S_IFDIR {
		return "", codeNotExecutable, "working folder " + cmd.Dir + ": not a folder"
	}
	name := cmd.Args[0]
	if strings.Contains(name, "/") {
		err := executable(join(cmd.Dir, name))
		if err == unix.ENOENT || err == unix.ENOTDIR {
			return "", codeNotFound, name + ": not found"
		}
		if err != nil {
			return "", codeNotExecutable, name + ": " + err.Error()
		}
		return name, 0, ""
	}
	denied := false
	for _, dir := range strings.Split(lookupEnv(cmd.Env, "PATH"), ":") {
		path := join(join(cmd.Dir, dir), name)
		switch err := executable(path); err {
		case nil:
			return path, 0, ""
		case errNotExecutable: // a folder of PATH that is closed to this user is no reason to say so
			denied = true
		}
	}
	if denied {
		return "", codeNotExecutable, name + ": permission denied"
	}
	return "", codeNotFound, name + ": not found in PATH"
}

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

var errNotExecutable = errors.New("permission denied")

func join(dir, name string) string {
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
