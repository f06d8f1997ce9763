package loop

import (
	"context"

	"slipway/job"
)

// MaxInvalid is how many decisions in a row may be of no use. Then the job has failed, for job.ReasonLimitFailures.
const MaxInvalid = 5

// Decider decides what an attempt does next. One Decider serves one attempt, and is called from one goroutine.
type Decider interface {
	// Next says what to do after the turns so far. ctx ends with the time that is left for deciding and doing, with
	// a cancel, and when the worker stops. A Next that ignores the end of ctx holds its slot, its lease and Worker.Run. A
	// Next that ctx interrupted may return any error: it is asked again, with Turn.Ending, if there is time. Any other
	// error means that nothing can be decided now, such as a model that does not answer, and costs the job one of its
	// infrastructure failures. A wrong answer is a Decision with Invalid.
	Next(ctx context.Context, turn Turn) (Decision, error)
}

// Planned is a Decider that knows its steps before the first turn, at most job.MaxSteps, as a Script does. The result of
// its job keeps every step, each with an excerpt that leaves room for all, and reports those that Next never gave as skipped.
type Planned interface {
	Decider
	// Rest returns the steps that Next has not given yet.
	Rest() []job.Step
}

// Turn is what a Decider knows when it decides.
type Turn struct {
	// Number counts the decisions so far.
	Number int
	// Last holds the results of the actions of the decision before, in order. An action that was not begun before the
	// attempt's end has none. Outputs are cut to runner.Config.Observation, whatever the result of the job keeps of them.
	Last []job.StepResult
	// Invalid says why the decision before was of no use, and nothing of it was done. Empty if it was of use.
	Invalid string
	// Failed: an action failed or timed out, and its step does not continue on error. The job can't succeed any more.
	Failed bool
	// Ending: the attempt was canceled or ran out of time. Only what always runs makes sense now.
	Ending bool
}

// Decision is one of: actions to take, the end, or an answer that makes no sense.
type Decision struct {
	// Actions to take in order, at most job.MaxSteps. They are all checked before the first one begins. The loop stops
	// in between only when the attempt ends.
	Actions []Action
	// Finish: there is nothing left to do.
	Finish bool
	// Invalid says why the answer could not be understood, for a Decider that asks something else, such as a model.
	Invalid string
}

// Action is one step to take.
type Action struct {
	// Step is a step as in a job. If is not looked at: a Decider that does not want a step done sets Skip.
	Step job.Step
	// Skip: report the step as skipped.
	Skip bool
}
