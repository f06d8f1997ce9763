package runner

import (
	"context"

	"slipway/job"
)

// Policy decides what an attempt does next. The loop alone owns limits,
// execution, recording and events; a policy only answers. One policy serves one
// attempt and is called from one goroutine.
type Policy interface {
	// Next says what to do after the turns so far. An error is an infrastructure failure.
	Next(ctx context.Context, turn Turn) (Decision, error)
}

// Turn is what a policy knows when it decides.
type Turn struct {
	// Number counts from 0.
	Number int
	// Last holds the results of the actions of the decision before. Empty at first.
	Last []job.StepResult
	// Failed: an action failed or timed out, and nothing said to go on regardless.
	Failed bool
	// Ending: the attempt was canceled or ran out of time. Only what runs always makes sense now.
	Ending bool
}

// Decision is one of: actions to take, the end, or an answer that makes no sense.
type Decision struct {
	// Actions to take in order. The loop stops in between only when the attempt ends.
	Actions []Action
	// Finish: there is nothing left to do.
	Finish bool
	// Invalid says why the answer could not be understood; it counts as a failure. Scripts never give it.
	Invalid string
}

// Action is one step to take.
type Action struct {
	Index int
	Step  job.Step
	// Skip: report the step as skipped.
	Skip bool
}
