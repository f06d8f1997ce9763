package loop

import (
	"context"

	"slipway/job"
)

// Script returns the Decider that walks steps, each once, in order. The steps are those of a valid job with its defaults.
func Script(steps []job.Step) Decider { return &script{steps: steps} }

// script gives its steps one at a time: whether a step runs depends on those before it.
type script struct {
	steps []job.Step
	next  int
}

// Next implements Decider.
func (s *script) Next(_ context.Context, t Turn) (Decision, error) {
	if s.next == len(s.steps) {
		return Decision{Finish: true}, nil
	}
	step := s.steps[s.next]
	s.next++
	return Decision{Actions: []Action{{Step: step, Skip: !runs(step.If, t.Failed, t.Ending)}}}, nil
}

// Rest implements Planned.
func (s *script) Rest() []job.Step { return s.steps[s.next:] }

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
