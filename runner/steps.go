package runner

import (
	"context"
	"errors"
	"fmt"
	"time"

	"slipway/internal/hint"
	"slipway/job"
)

// EndingTime is how long all always-steps together may take once the job's
// timeout ran out or a user canceled it.
const EndingTime = 5 * time.Minute

// steps runs the job's steps and says how they ended.
func (a *attempt) steps(holdCtx, workCtx context.Context, interrupt context.CancelCauseFunc) verdict {
	a.events.add(job.Event{Kind: job.EventPhase, Text: phaseSteps})
	began := time.Now()
	timeout := time.AfterFunc(a.job.Timeout.Std(), func() { interrupt(errJobTimeout) })
	defer timeout.Stop()
	v := a.loop(holdCtx, workCtx, &script{steps: a.job.Steps})
	a.skipRest()
	took := time.Since(began)
	a.result.Phases.Steps = job.Duration(took)
	a.obs.PhaseDone(phaseSteps, took, v.outcome == job.Succeeded)
	return v
}

// loop asks the policy and does what it says, until it finishes or the attempt
// ends. Once workCtx has ended it goes on with what runs always, for a bounded time.
func (a *attempt) loop(holdCtx, workCtx context.Context, policy Policy) verdict {
	ctx, v, turn := workCtx, verdict{outcome: job.Succeeded}, Turn{}
	for {
		if holdCtx.Err() != nil {
			return stopped(context.Cause(holdCtx))
		}
		if !turn.Ending && workCtx.Err() != nil {
			turn.Ending = true
			v = first(v, stopped(context.Cause(workCtx)))
			endCtx, cancel := context.WithTimeoutCause(holdCtx, EndingTime, errEndingTime)
			defer cancel()
			ctx = endCtx
		}
		if ctx.Err() != nil {
			return v // the ending took too long as well
		}
		d, err := policy.Next(ctx, turn)
		switch {
		case err != nil:
			return judge(phaseSteps, fmt.Errorf("decide next step: %w", err), context.Cause(ctx))
		case d.Finish:
			return v
		case len(d.Actions) == 0:
			return judge(phaseSteps, fmt.Errorf("decide next step: no action: %s", d.Invalid), nil)
		}
		turn.Number++
		if turn.Last, err = a.actions(holdCtx, ctx, d.Actions); err != nil {
			return boxFailed(holdCtx, workCtx, v, err)
		}
		for i, r := range turn.Last {
			if failedStep(r) && !d.Actions[i].Step.ContinueOnError {
				turn.Failed = true
				v = first(v, stepVerdict(r))
			}
		}
	}
}

// boxFailed is the verdict on a job whose box failed under a step after v. A box
// that failed while the job was being ended, for its time or by a user, changes
// nothing about that: trying again would last as long and end the same way.
func boxFailed(holdCtx, workCtx context.Context, v verdict, err error) verdict {
	if holdCtx.Err() == nil && workCtx.Err() != nil {
		return first(v, stopped(context.Cause(workCtx)))
	}
	return judge(phaseSteps, err, context.Cause(holdCtx))
}

// first is the verdict on a job to which two things happened, a before b: what
// happened first counts, except that a cancel is always told as one.
func first(a, b verdict) verdict {
	if a.outcome == job.Succeeded || b.outcome == job.Canceled {
		return b
	}
	return a
}

// failedStep reports whether r counts as a failure. A step that was ended from
// outside is judged by what ended it.
func failedStep(r job.StepResult) bool {
	return r.Status == job.StepFailed || r.Status == job.StepTimedOut
}

// actions does one after the other, until ctx ends.
func (a *attempt) actions(holdCtx, ctx context.Context, list []Action) ([]job.StepResult, error) {
	var done []job.StepResult
	for i := range list {
		if i > 0 && ctx.Err() != nil {
			break
		}
		r, err := a.action(holdCtx, ctx, &list[i])
		a.result.Steps = append(a.result.Steps, r)
		done = append(done, r)
		if err != nil {
			return done, err
		}
	}
	return done, nil
}

// action does one step, as often as its retry says.
func (a *attempt) action(holdCtx, ctx context.Context, act *Action) (job.StepResult, error) {
	name := act.Step.Label(act.Index)
	if act.Skip {
		return a.skipped(act.Index, name), nil
	}
	a.events.add(job.Event{Kind: job.EventStepStart, Step: act.Index, Name: name})
	began := time.Now()
	for try := 1; ; try++ {
		r, log, err := a.try(ctx, act)
		r.Index, r.Name, r.Tries = act.Index, name, try
		again := err == nil && try < act.Step.Retry.Attempts && retryable(r) && ctx.Err() == nil
		if again {
			a.obs.StepRetried()
			pause(ctx, backoff(act.Step.Retry.Backoff.Std(), try-1))
		}
		if again && ctx.Err() == nil {
			log.close()
			continue
		}
		last := r.Duration.Std()
		r.StartedAt, r.Duration = began, job.Duration(r.FinishedAt.Sub(began))
		r.Message = shorten(r.Message, maxStepMessage)
		a.storeLog(holdCtx, act.Index, name, log)
		a.events.add(job.Event{
			Kind: job.EventStepEnd, Step: r.Index, Name: r.Name,
			Status: r.Status, ExitCode: r.ExitCode, Reason: r.Reason, Text: r.Message, Tries: r.Tries,
		})
		a.obs.StepDone(r.Status, last)
		return r, err
	}
}

// maxStepMessage bounds a step's message, in bytes: a result holds up to 200.
const maxStepMessage = 512

// retryable: the step failed by itself. What was ended from outside is not tried again.
func retryable(r job.StepResult) bool {
	return r.Status == job.StepFailed || r.Status == job.StepTimedOut && r.Reason == job.ReasonStepTimeout
}

// skipped is the result of a step that does not run.
func (a *attempt) skipped(index int, name string) job.StepResult {
	r := job.StepResult{Index: index, Name: name, Status: job.StepSkipped}
	a.events.add(job.Event{Kind: job.EventStepEnd, Step: index, Name: name, Status: r.Status})
	a.obs.StepDone(r.Status, 0)
	return r
}

// skipRest notes the steps that nobody asked about any more as skipped.
func (a *attempt) skipRest() {
	for i := len(a.result.Steps); i < len(a.job.Steps); i++ {
		a.result.Steps = append(a.result.Steps, a.skipped(i, a.job.Steps[i].Label(i)))
	}
}

// try does a step once. The error is the machinery's: it says nothing about the step.
func (a *attempt) try(ctx context.Context, act *Action) (job.StepResult, *spool, error) {
	out := &output{step: act.Index, excerpt: excerpt{size: a.size}, events: a.events}
	if a.w.cfg.Store != nil {
		out.limit = a.w.cfg.StepLogLimit
	}
	var r job.StepResult
	r.StartedAt = time.Now()
	err := recovered(func() error { return a.perform(ctx, &act.Step, out, &r) })
	r.FinishedAt = time.Now()
	r.Duration = job.Duration(r.FinishedAt.Sub(r.StartedAt))
	printed := r.Output.Bytes // as the box counted
	r.Output = out.excerpt.output()
	if lost := printed - r.Output.Bytes; lost > 0 {
		r.Output.Bytes, r.Output.Elided = printed, r.Output.Elided+lost
	}
	if err == nil {
		return r, out.log, nil
	}
	r.Status, r.Message = job.StepErrored, hint.Text(err)
	if ctx.Err() != nil {
		r.Status, r.Reason, r.Message = stepStopped(context.Cause(ctx))
	} else {
		r.Reason = judge(phaseSteps, err, nil).reason
	}
	if p := (*panicError)(nil); errors.As(err, &p) {
		return r, out.log, err
	}
	return r, out.log, fmt.Errorf("step %q: %w", act.Step.Label(act.Index), err)
}
