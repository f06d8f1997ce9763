//go:build unix

package main

import (
	"os/exec"
	"syscall"
)

// owned puts the command's process group under our control: what a killed test leaves running ends with it.
func owned(cmd *exec.Cmd) {
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	cmd.Cancel = func() error { return syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL) }
}
