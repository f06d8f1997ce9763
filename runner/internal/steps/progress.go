package steps

import (
	"context"
	"fmt"

	"slipway/job"
	"slipway/runner/internal/verdict"
	"slipway/runner/loop"
)

// progress is how far a Run is.
type progress struct {
	hold, work context.Context    //nolint:containedctx // of one Run
	ctx        context.Context    //nolint:containedctx // work and, once that has ended, the ending time within hold
	release    context.CancelFunc // of the ending time
	verdict    verdict.Verdict
	turn       loop.Turn
	invalid    int // decisions in a row that could not be used
	over       bool
}

// goesOn reports whether there is another turn. It begins the ending time once work has ended.
func (p *progress) goesOn() bool {
	switch {
	case p.over:
		return false
	case p.hold.Err() != nil:
		p.end(verdict.Stopped(context.Cause(p.hold)))
		return false
	case !p.turn.Ending && p.work.Err() != nil:
		p.turn.Ending = true
		p.verdict = verdict.Earlier(p.verdict, verdict.Stopped(context.Cause(p.work)))
		p.ctx, p.release = context.WithTimeoutCause(p.hold, EndingTime, endingOver{})
	}
	return p.ctx.Err() == nil // else the ending took too long as well
}

// finish ends a job whose Decider has nothing more to do. What ended the job while the Decider thought about it still counts.
func (p *progress) finish() {
	switch {
	case p.hold.Err() != nil:
		p.end(verdict.Stopped(context.Cause(p.hold)))
	case p.work.Err() != nil:
		p.end(verdict.Earlier(p.verdict, verdict.Stopped(context.Cause(p.work))))
	}
}

// end makes v the verdict, whatever happened before.
func (p *progress) end(v verdict.Verdict) { p.verdict, p.over = v, true }

// accept begins the next turn. A decision that was refused is told in it, until there were too many in a row.
func (p *progress) accept(refused string) bool {
	p.turn.Number++
	p.turn.Last, p.turn.Invalid = nil, refused
	if refused == "" {
		p.invalid = 0
		return true
	}
	if p.invalid++; p.invalid == loop.MaxInvalid {
		why := fmt.Sprintf("%d decisions in a row could not be used; the last one: %s", p.invalid, refused)
		p.end(verdict.Earlier(p.verdict, verdict.Of(job.ReasonLimitFailures, why)))
	}
	return false
}

// undecided takes an error of the Decider, and reports whether it is asked again: a Decider that a cancel or the job's
// timeout interrupted has not failed, and its next turn is Ending.
func (p *progress) undecided(err error) (again bool) {
	if p.hold.Err() == nil && p.work.Err() != nil && !p.turn.Ending {
		return true
	}
	p.broken(fmt.Errorf("decide next step: %w", err))
	return false
}

// note takes the result of an action.
func (p *progress) note(r job.StepResult, continues bool) {
	p.turn.Last = append(p.turn.Last, r)
	if failed(r) && !continues {
		p.turn.Failed = true
		p.verdict = verdict.Earlier(p.verdict, ofStep(r))
	}
}

// broken ends a job whose box or Decider failed. A failure while the job was being ended, for its time or by a user,
// changes nothing about that: another try would last as long and end the same way.
func (p *progress) broken(err error) {
	if p.hold.Err() == nil && p.work.Err() != nil {
		p.end(verdict.Earlier(p.verdict, verdict.Stopped(context.Cause(p.work))))
		return
	}
	p.end(verdict.Judge(err, context.Cause(p.hold), job.ReasonInternal))
}
