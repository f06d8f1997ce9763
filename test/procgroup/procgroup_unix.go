//go:build unix

// Package procgroup ends a program together with everything that it started.
package procgroup

import (
	"os"
	"os/exec"
	"syscall"
)

// Own gives cmd, which has not started yet, a process group of its own and makes its context's end kill the whole
// group. A ^C on the terminal then reaches this process only, which has to end the context.
func Own(cmd *exec.Cmd) {
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	cmd.Cancel = func() error {
		if err := syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL); err != nil {
			return os.ErrProcessDone // the group is empty
		}
		return nil
	}
}
