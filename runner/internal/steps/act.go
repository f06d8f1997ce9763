package steps

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"time"

	"slipway/internal/hint"
	"slipway/internal/pause"
	"slipway/job"
	"slipway/runner/internal/backoff"
	"slipway/runner/internal/excerpt"
	"slipway/runner/internal/panics"
	"slipway/runner/internal/verdict"
	"slipway/runner/loop"
)

// maxStepMessage bounds a step's message, in bytes: a result holds up to 200.
const maxStepMessage = 512

// act does one step, as often as its retry says, and returns what the Decider is told of it. The error is the machinery's.
func (x *Executor) act(hold, ctx context.Context, a *loop.Action) (job.StepResult, error) {
	if a.Skip {
		return x.skip(&a.Step), nil
	}
	index, name := x.take(&a.Step)
	x.cfg.Events.Add(job.Event{Kind: job.EventStepStart, Step: index, Name: name, Text: title(&a.Step)})
	began := time.Now()
	for try := 1; ; try++ {
		r, out, err := x.try(ctx, &a.Step, index)
		r.Index, r.Name, r.Title, r.Tries = index, name, titleOf(&a.Step, index), try
		again := err == nil && try < a.Step.Retry.Attempts && failed(r) && ctx.Err() == nil // else it was ended from outside
		if again {
			delay := backoff.Delay(a.Step.Retry.Backoff.Std(), try-1)
			x.cfg.Events.Add(retryEvent(r, delay))
			again = pause.For(ctx, delay)
		}
		x.cfg.Observer.LogKept(0, out.missing, LostBox)
		if again {
			x.cfg.Observer.StepRetried()
			out.log.close()
			x.cfg.Observer.LogKept(0, out.excerpt.Total(), LostTry)
			continue
		}
		last := r.Duration.Std()
		r.StartedAt, r.Duration = began, job.Duration(r.FinishedAt.Sub(began))
		r.Message = excerpt.Shorten(r.Message, maxStepMessage)
		key := x.storeLog(hold, &r, out)
		x.record.add(r, key)
		x.cfg.Events.Add(job.Event{
			Kind: job.EventStepEnd, Step: r.Index, Name: r.Name,
			Status: r.Status, ExitCode: r.ExitCode, Signal: r.Signal, Reason: r.Reason, Text: r.Message, Tries: r.Tries,
			Leftovers: r.Leftovers, Cut: r.Output.Cut, Truncated: r.Output.Truncated, TruncatedLines: r.Output.TruncatedLines,
		})
		x.cfg.Observer.StepDone(r.Status, last)
		r.Output = out.observation(r.Output)
		return r, err
	}
}

// retryEvent tells that a try ended as r says, and that the next one follows after delay.
func retryEvent(r job.StepResult, delay time.Duration) job.Event {
	e := job.Event{
		Kind: job.EventStepRetry, Step: r.Index, Name: r.Name, Status: r.Status, ExitCode: r.ExitCode, Signal: r.Signal,
		Reason: r.Reason, Text: excerpt.Shorten(r.Message, maxStepMessage), Tries: r.Tries,
	}
	if delay > 0 {
		e.NotBefore = time.Now().Add(delay)
	}
	return e
}

// maxTitle bounds what an event says of a step that begins, in bytes.
const maxTitle = 80

// title is the beginning of what a step does: people know a step without a name by it.
func title(s *job.Step) string {
	text := strings.Join(s.Command, " ")
	switch s.Kind() {
	case job.KindRun:
		text = s.Run
	case job.KindWrite:
		text = "write " + s.Write.Path
	case job.KindRead:
		text = "read " + s.Read
	case job.KindDelete:
		text = "delete " + s.Delete
	case job.KindList:
		text = "list " + s.List
	}
	line, more, _ := strings.Cut(strings.TrimSpace(text), "\n")
	if strings.TrimSpace(more) != "" {
		line += " …"
	}
	return excerpt.Shorten(line, maxTitle)
}

// titleOf is the title of a step that has no name. A job's defaults give it its number for one.
func titleOf(s *job.Step, index int) string {
	if s.Name != "" && s.Name != strconv.Itoa(index+1) {
		return ""
	}
	return title(s)
}

// take gives a step its index, and returns what people see of it.
func (x *Executor) take(s *job.Step) (index int, name string) {
	index = x.next
	x.next++
	return index, s.Label(index)
}

// skip records a step that does not run.
func (x *Executor) skip(s *job.Step) job.StepResult {
	index, name := x.take(s)
	r := job.StepResult{Index: index, Name: name, Title: titleOf(s, index), Status: job.StepSkipped}
	x.record.add(r, "")
	x.cfg.Events.Add(job.Event{Kind: job.EventStepEnd, Step: index, Name: name, Status: r.Status})
	x.cfg.Observer.StepDone(r.Status, 0)
	return r
}

// try does a step once. The error is the machinery's: it says nothing about the step.
func (x *Executor) try(ctx context.Context, s *job.Step, index int) (job.StepResult, *output, error) {
	out := x.newOutput(index)
	r := job.StepResult{StartedAt: time.Now()}
	err := panics.Catch(func() error {
		if kind := s.Kind(); kind == job.KindRun || kind == job.KindCommand {
			return x.exec(ctx, s, out, &r)
		}
		return x.fileAction(ctx, s, out, &r)
	})
	r.FinishedAt = time.Now()
	r.Duration = job.Duration(r.FinishedAt.Sub(r.StartedAt))
	r.Output = out.result(r.Output)
	if err == nil {
		return r, out, nil
	}
	r.Status, r.Message = job.StepErrored, hint.Text(err)
	if ctx.Err() != nil {
		r.Status, r.Reason, r.Message = stepStopped(context.Cause(ctx))
	} else {
		v := verdict.Judge(err, nil, job.ReasonInternal)
		r.Status, r.Reason = statusOf(v.Outcome), v.Reason
	}
	if _, ok := errors.AsType[*panics.Error](err); ok {
		return r, out, err
	}
	return r, out, fmt.Errorf("step %q: %w", s.Label(index), err)
}
