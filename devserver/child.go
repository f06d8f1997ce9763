package devserver

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"sync"
	"time"

	"slipway/internal/devprotocol"
)

// startTime bounds the start. A NATS server that recovers a large store takes seconds, not minutes.
const startTime = 40 * time.Second

// child is the process of one server.
type child struct {
	name string // of the program
	set  devprotocol.Settings
	log  *tail
	path string // of the program; valid after find
	addr string // host:port of the server; valid after start

	stdin io.Closer
	kill  func() error
	ended func()        // is called before done is closed
	done  chan struct{} // closed when the process has ended
	err   error         // how; valid when done is closed
	once  sync.Once
}

// find looks for the program: in the given folder, else beside the running program, else in PATH.
func (c *child) find(folder string) (err error) {
	if folder != "" {
		if c.path, err = exec.LookPath(filepath.Join(folder, c.name)); err != nil { // looks for .exe too
			return fmt.Errorf("%w: %w", ErrNoProgram, err)
		}
		c.path, err = filepath.Abs(c.path)
		return err
	}
	dir := "(unknown)"
	if self, err := os.Executable(); err == nil {
		dir = filepath.Dir(self)
		if c.path, err = exec.LookPath(filepath.Join(dir, c.name)); err == nil {
			return nil
		}
	}
	if c.path, err = exec.LookPath(c.name); err != nil {
		return fmt.Errorf("%w: %s is neither in %s, where the running program is, nor in PATH", ErrNoProgram, c.name, dir)
	}
	c.path, err = filepath.Abs(c.path)
	return err
}

// start starts the program, and returns when its server answers. After an error nothing runs.
func (c *child) start(ctx context.Context) error {
	if err := os.MkdirAll(c.set.Dir, 0o700); err != nil {
		return fmt.Errorf("make the data folder of %s: %w", c.name, err)
	}
	report, err := c.launch()
	if err != nil {
		return err
	}
	r, err := c.awaitReport(ctx, report)
	switch {
	case err != nil:
		closeErr := c.close()
		return errors.Join(fmt.Errorf("%w: %s", err, c.log), closeErr)
	case r.Error != "":
		c.close() // its exit code says no more than the report
		return errors.New(r.Error)
	case r.Addr == "":
		return errors.Join(fmt.Errorf("%s reported no address: is it %s?", c.path, c.name), c.close())
	}
	c.addr = r.Addr
	return nil
}

// launch starts the process, and returns what it reports on.
func (c *child) launch() (report *os.File, err error) {
	input, err := json.Marshal(c.set)
	if err != nil {
		return nil, err
	}
	report, reportTo, err := os.Pipe()
	if err != nil {
		return nil, err
	}
	cmd := exec.Command(c.path, devprotocol.ChildArg) //nolint:noctx // it outlives the context of the start; close ends it
	// Nothing else of the environment: it may hold secrets, which these servers have no use for.
	cmd.Env = []string{"TMPDIR=" + os.TempDir(), "PATH=" + os.Getenv("PATH")}
	cmd.Stdout, cmd.Stderr = c.log, c.log
	cmd.WaitDelay = devprotocol.CloseTime
	cmd.ExtraFiles = []*os.File{reportTo}
	stdin, err := cmd.StdinPipe()
	if err == nil {
		err = c.run(cmd)
	}
	reportTo.Close()
	if err != nil {
		report.Close()
		return nil, err
	}
	c.stdin, c.kill = stdin, cmd.Process.Kill
	stdin.Write(append(input, '\n')) //nolint:errcheck // a child that does not read has ended, which its report shows
	return report, nil
}

// awaitReport reads the report of the start, which must come within startTime. It closes report.
func (c *child) awaitReport(ctx context.Context, report io.ReadCloser) (devprotocol.Report, error) {
	ctx, cancel := context.WithTimeout(ctx, startTime)
	defer cancel()
	type result struct {
		devprotocol.Report
		err error
	}
	got := make(chan result, 1)
	go func() { // ends with the report, or with the child
		var r result
		r.err = json.NewDecoder(report).Decode(&r.Report)
		report.Close()
		got <- r
	}()
	select {
	case r := <-got:
		if r.err != nil {
			return r.Report, errors.New(c.name + " ended before it listened")
		}
		return r.Report, nil
	case <-ctx.Done():
		return devprotocol.Report{}, fmt.Errorf("%s does not listen: %w", c.name, context.Cause(ctx))
	}
}

// close ends the process and waits for it. It may be called twice.
func (c *child) close() error {
	c.once.Do(func() {
		c.stdin.Close()
		select {
		case <-c.done:
		case <-time.After(devprotocol.CloseTime):
			c.kill() //nolint:errcheck // it fails only if the process has ended
		}
	})
	<-c.done
	return c.err
}
