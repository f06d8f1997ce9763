package runner

import (
	"bufio"
	"context"
	"fmt"
	"path"
	"slices"
	"strconv"
	"sync"
	"time"

	"go.uber.org/zap"

	"slipway/container"
	"slipway/internal/hint"
	"slipway/job"
)

// perform does what a step says, and puts how it ended into r.
func (a *attempt) perform(ctx context.Context, s *job.Step, out *output, r *job.StepResult) error {
	switch s.Kind() {
	case job.KindRun, job.KindCommand:
		return a.exec(ctx, s, out, r)
	default:
		return a.fileAction(ctx, s, out, r)
	}
}

// exec runs a command in the box.
func (a *attempt) exec(ctx context.Context, s *job.Step, out *output, r *job.StepResult) error {
	cmd, err := command(s)
	if err != nil {
		return err
	}
	cmd.Output = out.write
	defer a.overdue(ctx, cmd)()
	exit, err := a.sandbox.Exec(ctx, cmd)
	if err != nil {
		return err
	}
	r.Status, r.Reason, r.Message = judgeExit(exit, context.Cause(ctx))
	r.ExitCode, r.Signal = &exit.Code, exit.Signal
	r.CPU, r.MaxRSS, r.Leftovers = job.Duration(exit.CPU), exit.MaxRSS, exit.Leftovers
	r.Output.Bytes = exit.Output
	a.blameDisk(ctx, r)
	return nil
}

// execSlack is how long Exec may take to end a command's processes, beyond timeout and grace.
const execSlack = time.Minute

// overdue destroys the box if cmd has not ended long after it should have: a
// box that can't end a command would keep its slot for ever. The function it returns ends the watch.
func (a *attempt) overdue(ctx context.Context, cmd container.Command) (stop func()) {
	done := make(chan struct{})
	var wg sync.WaitGroup
	wg.Go(func() {
		limit := time.NewTimer(cmd.Timeout + cmd.Grace + execSlack)
		defer limit.Stop()
		if cmd.Timeout == 0 {
			limit.Stop()
		}
		select {
		case <-done:
			return
		case <-limit.C:
		case <-ctx.Done():
			limit.Reset(cmd.Grace + execSlack)
			select {
			case <-done:
				return
			case <-limit.C:
			}
		}
		a.log.Error("a command does not end, the box is destroyed", zap.Strings("args", cmd.Args[:1]))
		a.clean(ctx)
	})
	return func() { close(done); wg.Wait() }
}

// command is the process of a run or command step. A script goes into the
// shell's arguments: a job's cap keeps it below what a kernel takes there.
func command(s *job.Step) (container.Command, error) {
	cmd := container.Command{Args: s.Command, Dir: s.Dir, Env: s.Env, Timeout: s.Timeout.Std(), Grace: job.DefaultGrace}
	if s.Run != "" {
		shell := s.Shell
		if len(shell) == 0 {
			shell = job.DefaultShell()
		}
		cmd.Args = append(slices.Clone(shell), s.Run)
	}
	if s.Grace != nil {
		cmd.Grace = s.Grace.Std()
	}
	if s.Stdin != nil {
		cmd.Stdin = []byte(*s.Stdin)
	}
	if s.User != "" {
		u, err := parseUser(s.User)
		if err != nil {
			return cmd, fmt.Errorf("user: %w", err)
		}
		cmd.User = &u
	}
	return cmd, nil
}

// fileAction reads, writes, lists or deletes through the box's file API.
func (a *attempt) fileAction(ctx context.Context, s *job.Step, out *output, r *job.StepResult) error {
	if limit := s.Timeout.Std(); limit > 0 {
		limited, cancel := context.WithTimeoutCause(ctx, limit, &timeoutError{"the step", limit})
		defer cancel()
		ctx = limited
	}
	err := fileCall(ctx, a.sandbox.Files(), s, out)
	if err == nil {
		r.Status = job.StepSucceeded
		return nil
	}
	reason, own := judgeFile(err)
	switch {
	case own:
		r.Status, r.Reason, r.Message = job.StepFailed, reason, a.hintDisk(hint.Text(err), err)
	case ctx.Err() != nil:
		r.Status, r.Reason, r.Message = stepStopped(context.Cause(ctx))
	default:
		return err
	}
	return nil
}

func fileCall(ctx context.Context, files container.Files, s *job.Step, out *output) error {
	switch s.Kind() {
	case job.KindWrite:
		w := s.Write
		if err := files.Write(ctx, path.Clean(w.Path), inline(w.Content, w.ContentBase64), fileMode(w.Mode)); err != nil {
			return fmt.Errorf("write %s: %w", w.Path, err)
		}
	case job.KindRead:
		if _, err := files.Read(ctx, path.Clean(s.Read), stdout{out}, 0); err != nil {
			return fmt.Errorf("read %s: %w", s.Read, err)
		}
	case job.KindDelete:
		if err := files.Delete(ctx, path.Clean(s.Delete)); err != nil {
			return fmt.Errorf("delete %s: %w", s.Delete, err)
		}
	case job.KindList:
		entries, err := files.List(ctx, path.Clean(s.List))
		if err != nil {
			return fmt.Errorf("list %s: %w", s.List, err)
		}
		printEntries(out, entries)
	default:
		return fmt.Errorf("step of no known kind")
	}
	return nil
}

// printEntries prints one name a line, a folder's with a slash. A name that
// could be taken for two is quoted as in Go.
func printEntries(out *output, entries []container.FileInfo) {
	w := bufio.NewWriter(stdout{out})
	for _, e := range entries {
		name := path.Base(e.Path)
		if e.Type == container.TypeDir {
			name += "/"
		}
		if quoted := strconv.Quote(name); quoted[1:len(quoted)-1] != name {
			name = quoted
		}
		_, _ = w.WriteString(name + "\n") // stdout never fails
	}
	_ = w.Flush()
}
