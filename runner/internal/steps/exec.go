package steps

import (
	"context"
	"sync"
	"time"

	"go.uber.org/zap"

	"slipway/container"
	"slipway/job"
	"slipway/runner/internal/translate"
)

// exec runs a command in the box, and puts how it ended into r.
func (x *Executor) exec(ctx context.Context, s *job.Step, out *output, r *job.StepResult) error {
	cmd, err := translate.Command(s)
	if err != nil {
		return err
	}
	cmd.Output = out.write
	defer x.overdue(ctx, cmd)()
	exit, err := x.cfg.Box.Exec(ctx, cmd)
	if err != nil {
		return err
	}
	r.Status, r.Reason, r.Message = judgeExit(exit, context.Cause(ctx))
	r.Message = adviseShell(s, exit, r.Message)
	r.ExitCode, r.Signal = &exit.Code, exit.Signal
	r.CPU, r.MaxRSS, r.Leftovers = job.Duration(exit.CPU), exit.MaxRSS, exit.Leftovers
	r.Output.Bytes, r.Output.Cut = exit.Output, exit.Cut
	x.blameDisk(ctx, r)
	return nil
}

// ExecSlack is how long a box may take to end a command's processes, beyond timeout and grace.
const ExecSlack = time.Minute

// overdue destroys the box if cmd has not ended long after it should have: a box that can't end a command would keep its
// slot for ever. The function it returns ends the watch.
func (x *Executor) overdue(ctx context.Context, cmd container.Command) (stop func()) {
	done := make(chan struct{})
	var wg sync.WaitGroup
	wg.Go(func() {
		limit := time.NewTimer(cmd.Timeout + cmd.Grace + ExecSlack)
		defer limit.Stop()
		if cmd.Timeout == 0 {
			limit.Stop()
		}
		select {
		case <-done:
			return
		case <-limit.C:
		case <-ctx.Done():
			limit.Reset(cmd.Grace + ExecSlack)
			select {
			case <-done:
				return
			case <-limit.C:
			}
		}
		x.cfg.Log.Error("a command does not end, the box is destroyed", zap.Strings("args", cmd.Args[:1]))
		x.cfg.Destroy(ctx)
	})
	return func() { close(done); wg.Wait() }
}
