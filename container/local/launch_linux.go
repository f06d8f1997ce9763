package local

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"runtime"
	"strconv"
	"strings"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"slipway/container"
	"slipway/container/supervisor"
)

// program is the supervisor as a file without a name, so that it can be run from
// where no file may be executed.
type program struct{ file *os.File }

func newProgram() (*program, error) {
	data, err := supervisor.Binary(runtime.GOARCH)
	if err != nil {
		return nil, err
	}
	fd, err := unix.MemfdCreate("slipway-box", unix.MFD_CLOEXEC|unix.MFD_EXEC)
	if errors.Is(err, unix.EINVAL) { // before Linux 6.3 it can be executed anyway
		fd, err = unix.MemfdCreate("slipway-box", unix.MFD_CLOEXEC)
	}
	if err != nil {
		return nil, os.NewSyscallError("memfd_create", err)
	}
	file := os.NewFile(uintptr(fd), "slipway-box")
	if _, err := file.Write(data); err != nil {
		return nil, errors.Join(fmt.Errorf("unpack supervisor: %w", err), file.Close())
	}
	return &program{file}, nil
}

func (p *program) path() string { return "/proc/self/fd/" + strconv.Itoa(int(p.file.Fd())) }

func (p *program) close() { _ = p.file.Close() }

// child is a running supervisor.
type child struct {
	conn   *os.File // this end of its stdin and stdout
	ended  chan struct{}
	stderr *tail
	kill   func(os.Signal) error
}

// terminate asks the supervisor to end the box.
func (c *child) terminate() { _ = c.kill(unix.SIGTERM) } // an error means that it has ended

// start runs the supervisor in a session of its own, so that a signal from the terminal reaches the worker only. Of
// the worker's environment it gets PATH alone: the rest may hold secrets.
func (p *Provider) start(b *sandbox) (*child, error) {
	pair, err := unix.Socketpair(unix.AF_UNIX, unix.SOCK_STREAM|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		return nil, os.NewSyscallError("socketpair", err)
	}
	_ = unix.SetNonblock(pair[0], true)
	c := &child{conn: os.NewFile(uintptr(pair[0]), "supervisor"), ended: make(chan struct{}), stderr: &tail{}}
	theirs := os.NewFile(uintptr(pair[1]), "supervisor")
	defer theirs.Close()
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.closed {
		return nil, errors.Join(fmt.Errorf("%w: the provider is closed", container.ErrEngineUnavailable), c.conn.Close())
	}
	cmd := exec.Command(p.program.path()) //nolint:noctx // it outlives Start: the end of its stdin ends it
	cmd.Args = []string{"slipway-box"}
	cmd.Dir = "/"
	cmd.Env = []string{"PATH=" + os.Getenv("PATH"), "LANG=C.UTF-8"}
	cmd.Stdin, cmd.Stdout, cmd.Stderr = theirs, theirs, c.stderr
	cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true}
	cmd.WaitDelay = time.Second
	if err := cmd.Start(); err != nil {
		return nil, errors.Join(fmt.Errorf("start supervisor: %w", err), c.conn.Close())
	}
	c.kill = cmd.Process.Signal
	go func() {
		_ = cmd.Wait() // the session says how it ended
		close(c.ended)
	}()
	return c, nil
}

// empty removes all that a folder holds, by the supervisor's program, which needs no open file for each level of a tree.
func (p *Provider) empty(dir string) error {
	cmd := exec.Command(p.program.path(), supervisor.WipeArgs(dir)...) //nolint:noctx // it ends by itself when it gets no further
	cmd.Dir = "/"
	cmd.Env = []string{}
	if out, err := cmd.CombinedOutput(); err != nil {
		return fmt.Errorf("empty %s: %w: %s", dir, err, strings.TrimSpace(string(out)))
	}
	return nil
}

// wait waits until the supervisor has ended, and kills it if it does not.
func (c *child) wait(d time.Duration) error {
	var err error
	select {
	case <-c.ended:
	case <-time.After(d):
		err = errors.Join(fmt.Errorf("supervisor did not end in %v", d), c.kill(unix.SIGKILL))
		<-c.ended
	}
	if text := strings.TrimSpace(c.stderr.String()); text != "" {
		err = errors.Join(err, errors.New(text))
	}
	return err
}
