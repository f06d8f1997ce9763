//go:build linux || darwin

package s3gateway

import (
	"os/exec"
	"runtime"
	"syscall"
)

// run starts the child and waits for it in the background. On Linux the kernel kills it when the thread that started
// it ends, so that thread has to stay until then.
func (g *Gateway) run(cmd *exec.Cmd) error {
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true} // a ^C on the terminal is the parent's to handle
	dieWithParent(cmd.SysProcAttr)
	started := make(chan error)
	go func() {
		runtime.LockOSThread()
		defer runtime.UnlockOSThread()
		err := cmd.Start()
		started <- err
		if err == nil {
			g.err = cmd.Wait()
			close(g.done)
		}
	}()
	return <-started
}
