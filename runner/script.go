package runner

import (
	"context"

	"slipway/job"
)

// script is the policy that walks a job's steps, each once, in order.
type script struct {
	steps []job.Step
	next  int
}

var _ Policy = (*script)(nil)

// Next gives one step at a time: whether the next one runs depends on this one.
func (s *script) Next(_ context.Context, t Turn) (Decision, error) {
	if s.next == len(s.steps) {
		return Decision{Finish: true}, nil
	}
	i := s.next
	s.next++
	step := s.steps[i]
	return Decision{Actions: []Action{{Index: i, Step: step, Skip: !runs(step.If, t.Failed, t.Ending)}}}, nil
}

// runs reports whether a step with the condition c runs now.
func runs(c job.Condition, failed, ending bool) bool {
	switch c {
	case job.IfAlways:
		return true
	case job.IfFailure:
		return failed && !ending
	default:
		return !failed && !ending
	}
}
