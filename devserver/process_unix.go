//go:build linux || darwin

package devserver

import (
	"fmt"
	"os/exec"
	"runtime"
	"syscall"
)

// run starts the child and waits for it in the background. On Linux the kernel kills it when the thread that started
// it ends, so that thread has to stay until then.
func (c *child) run(cmd *exec.Cmd) error {
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
				c.err = fmt.Errorf("%s: %w", c.name, err)
			}
			c.ended()
			close(c.done)
		}
	}()
	return <-started
}
