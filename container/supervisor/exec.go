package supervisor

import (
	"context"
	"errors"
	"fmt"
	"io"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"slipway/container"
	"slipway/container/supervisor/internal/wire"
)

const (
	// exitMargin is how long after a command's last deadline its exit may take to arrive from a box that shows signs of life.
	// One that takes longer can't end the command, whatever that does.
	exitMargin = 5 * time.Second
	// silentMargin is the same for a box of which nothing is heard: its machine may stand still, and it with it.
	silentMargin = 15 * time.Second
)

// Exec runs a command; see container.Sandbox.
func (s *Session) Exec(ctx context.Context, cmd container.Command) (container.Exit, error) {
	if err := checkCommand(cmd); err != nil {
		return container.Exit{}, err
	}
	if err := s.Err(); err != nil {
		return container.Exit{}, err
	}
	stream, err := s.mux.Open(byte(wire.KindExec), s.command(cmd).Encode())
	if err != nil {
		return container.Exit{}, s.explain(err)
	}
	var feeding sync.WaitGroup
	defer feeding.Wait() // the end of the stream ends it
	if len(cmd.Stdin) > 0 {
		feeding.Go(func() {
			if _, err := stream.Write(cmd.Stdin); err == nil {
				_ = stream.CloseWrite() // a lost connection ends the stream, too
			}
		})
	}
	c := &running{session: s, cmd: cmd}
	stop := context.AfterFunc(ctx, func() {
		c.limit(cmd.Grace)      // first: a box that does not read holds up the other
		_ = stream.SendCancel() // a lost connection ends the stream, too
	})
	defer stop()
	defer c.finish()
	if cmd.Timeout > 0 {
		c.limit(cmd.Timeout + cmd.Grace)
	}
	return c.collect(stream)
}

func checkCommand(cmd container.Command) error {
	if len(cmd.Args) == 0 || cmd.Args[0] == "" {
		return fmt.Errorf("%w: command without a program", container.ErrSpec)
	}
	for _, a := range cmd.Args {
		if strings.IndexByte(a, 0) >= 0 {
			return fmt.Errorf("%w: argument with a zero byte", container.ErrSpec)
		}
	}
	for k, v := range cmd.Env {
		if k == "" || strings.ContainsAny(k, "=\x00") || strings.IndexByte(v, 0) >= 0 {
			return fmt.Errorf("%w: environment variable %q", container.ErrSpec, k)
		}
	}
	if cmd.Timeout < 0 || cmd.Grace < 0 {
		return fmt.Errorf("%w: negative timeout or grace", container.ErrSpec)
	}
	return nil
}

func (s *Session) command(cmd container.Command) wire.Command {
	w := wire.Command{
		Args: cmd.Args, Dir: cmd.Dir, Env: environ(cmd.Env), UID: -1, GID: -1,
		Timeout: cmd.Timeout, Grace: cmd.Grace, Stdin: len(cmd.Stdin) > 0,
	}
	if cmd.User != nil {
		w.UID, w.GID = cmd.User.UID, cmd.User.GID
	}
	return w
}

// explain prefers the reason why the session ended over what that did to a call. A box that breaks the protocol is lost.
func (s *Session) explain(err error) error {
	select {
	case <-s.broken: // what a closed connection does to a call says nothing
		<-s.done
	default:
	}
	if serr := s.Err(); serr != nil {
		return serr
	}
	if errors.Is(err, wire.ErrProtocol) {
		return fmt.Errorf("%w: %w", container.ErrBoxLost, err)
	}
	return err
}

// running is one Exec.
type running struct {
	session *Session
	cmd     container.Command
	busy    atomic.Bool // Output has been called and has not returned

	mu    sync.Mutex
	guard *time.Timer
	over  bool
}

// limit gives the box up if the command is not over some time after d. While Output runs the time is extended: a slow
// Output is no fault of the box.
func (c *running) limit(d time.Duration) {
	due := time.Since(c.session.start) + d
	c.after(d, func() {
		c.session.ping(c.session.mux.TrySend) // else its next sign may be later than exitMargin
		c.after(exitMargin, func() { c.giveUp(due) })
	})
}

// giveUp ends the session: the box has not ended the command exitMargin after it was due, by the session's clock.
func (c *running) giveUp(due time.Duration) {
	switch {
	case c.busy.Load():
		c.limit(0)
	case time.Duration(c.session.heard.Load()) >= due:
		c.session.fail(fmt.Errorf("%w: it did not end %v after its deadline", container.ErrStuck, exitMargin))
	default:
		c.after(silentMargin-exitMargin, func() {
			c.session.fail(fmt.Errorf("a command did not end %v after its deadline, and nothing was heard of the box", silentMargin))
		})
	}
}

// after calls what after d, in place of what was to be called, unless the command is over by then.
func (c *running) after(d time.Duration, what func()) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.guard != nil {
		c.guard.Stop()
	}
	if c.over {
		return
	}
	c.guard = time.AfterFunc(d, func() {
		c.mu.Lock()
		over := c.over
		c.mu.Unlock()
		if !over {
			what()
		}
	})
}

func (c *running) finish() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.over = true
	if c.guard != nil {
		c.guard.Stop()
	}
}

// collect passes the output on and returns the exit that the box reports.
func (c *running) collect(stream *wire.Stream) (container.Exit, error) {
	for {
		t, b, err := stream.Next()
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			return container.Exit{}, c.session.explain(err)
		}
		if c.cmd.Output == nil {
			continue
		}
		c.busy.Store(true)
		if t == wire.Stderr {
			c.cmd.Output(container.Stderr, b)
		} else {
			c.cmd.Output(container.Stdout, b)
		}
		c.busy.Store(false)
	}
	result, err := stream.Result()
	if err != nil {
		return container.Exit{}, c.session.explain(err)
	}
	return decodeExit(result)
}

func decodeExit(b []byte) (container.Exit, error) {
	x, err := wire.DecodeExit(b)
	if err != nil {
		return container.Exit{}, fmt.Errorf("%w: %w", container.ErrBoxLost, err)
	}
	if x.Lost != "" {
		return container.Exit{}, fmt.Errorf("%w: how the command ended is not known: %s", container.ErrBoxLost, x.Lost)
	}
	return container.Exit{
		Code: x.Code, Signal: signalName(x.Signal), Error: x.Error, TimedOut: x.TimedOut, Canceled: x.Canceled,
		OOM: x.OOM, CPU: x.CPU, MaxRSS: x.MaxRSS, Leftovers: x.Leftovers, Cut: x.Cut, Pids: x.Pids, Unwatched: x.Unwatched,
		Duration: x.Duration, Output: x.Output,
	}, nil
}

// signals are Linux's, whatever this worker runs on.
var signals = [...]string{
	1: "SIGHUP", 2: "SIGINT", 3: "SIGQUIT", 4: "SIGILL", 5: "SIGTRAP", 6: "SIGABRT", 7: "SIGBUS", 8: "SIGFPE",
	9: "SIGKILL", 10: "SIGUSR1", 11: "SIGSEGV", 12: "SIGUSR2", 13: "SIGPIPE", 14: "SIGALRM", 15: "SIGTERM",
	16: "SIGSTKFLT", 17: "SIGCHLD", 18: "SIGCONT", 19: "SIGSTOP", 20: "SIGTSTP", 21: "SIGTTIN", 22: "SIGTTOU",
	23: "SIGURG", 24: "SIGXCPU", 25: "SIGXFSZ", 26: "SIGVTALRM", 27: "SIGPROF", 28: "SIGWINCH", 29: "SIGIO",
	30: "SIGPWR", 31: "SIGSYS",
}

func signalName(n int) string {
	switch {
	case n <= 0:
		return ""
	case n < len(signals):
		return signals[n]
	default:
		return fmt.Sprintf("SIG%d", n)
	}
}
