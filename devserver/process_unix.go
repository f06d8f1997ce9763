//go:build linux || darwin

package devserver

import (
	"fmt"
	"os/exec"
	"runtime"
	"syscall"

	"slipway/internal/devprotocol"
)

// run starts the child and waits for it in the background. On Linux the kernel kills it when the thread that started
// it ends, so that thread has to stay until then.
func (s *Servers) run(cmd *exec.Cmd) error {
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true} // a ^C on the terminal is the parent's to handle
	dieWithParent(cmd.SysProcAttr)
	started := make(chan error)
	go func() {
		runtime.LockOSThread()
		defer runtime.UnlockOSThread()
		err := cmd.Start()
		started <- err
		if err == nil {
			if err := cmd.Wait(); err != nil {
				s.err = fmt.Errorf("%s: %w", devprotocol.Program, err)
			}
			close(s.done)
		}
	}()
	return <-started
}
