package joblog

import (
	"bytes"
	"maps"
	"slices"
	"strings"

	"slipway/job"
	"slipway/job/follow"
)

// division is the updates of one attempt by the step that they belong to.
type division struct {
	before, after []follow.Update
	steps         map[int]*step
	gap           bool // events are missing somewhere
}

// step is what the queue has of one step's events.
type step struct {
	updates        []follow.Update
	started, ended bool
	skipped        bool
	broken         bool  // events or output are missing
	bytes          int64 // of output
}

// divide sorts the updates of one attempt. A gap breaks the step that it is in, and the step that goes on after it.
func divide(updates []follow.Update) division {
	d := division{steps: map[int]*step{}}
	open, afterGap := -1, false
	for _, u := range updates {
		e, ok := u.(follow.Event)
		if !ok {
			d.gap, afterGap = true, true
			if open >= 0 {
				d.steps[open].breakAt(u)
			}
			continue
		}
		index, ofStep := stepOf(e.Event, open)
		switch {
		case ofStep:
			s := d.step(index)
			if afterGap && index != open && e.Kind != job.EventStepStart && e.Status != job.StepSkipped {
				s.broken = true
			}
			s.add(e)
			if open = index; e.Kind == job.EventStepEnd {
				open = -1
			}
		case len(d.steps) == 0 && beforeSteps(e.Event):
			d.before = append(d.before, u)
		default:
			d.after = append(d.after, u)
		}
		afterGap = false
	}
	return d
}

// beforeSteps reports whether e comes before the first step, if the events of the steps are all gone.
func beforeSteps(e job.Event) bool {
	return e.Kind == job.EventClaimed || e.Kind == job.EventPhase && e.Text != "push_workspace"
}

// stepOf is the step that e is about. An older worker does not say which step's output it left out: it is the open one's.
func stepOf(e job.Event, open int) (index int, ok bool) {
	switch e.Kind {
	case job.EventDropped:
		return max(open, e.Step), true
	case job.EventStepStart, job.EventOutput, job.EventStepRetry, job.EventStepEnd:
		return e.Step, true
	}
	return 0, false
}

func (d division) step(index int) *step {
	if d.steps[index] == nil {
		d.steps[index] = &step{}
	}
	return d.steps[index]
}

// indexes are the steps of which anything is known, in order.
func (d division) indexes(results map[int]*job.StepResult) []int {
	known := map[int]bool{}
	for i := range d.steps {
		known[i] = true
	}
	for i := range results {
		known[i] = true
	}
	return slices.Sorted(maps.Keys(known))
}

// missing reports whether output of the wanted steps is missing. The step that goes on has no end yet.
func (d division) missing(only *only) bool {
	if only == nil {
		return d.gap || slices.ContainsFunc(slices.Collect(maps.Values(d.steps)), func(s *step) bool { return s.broken })
	}
	for index, s := range d.steps {
		if only.wants(index) && (s.broken || !s.started && !s.skipped) {
			return true
		}
	}
	return false
}

func (s *step) add(e follow.Event) {
	s.updates = append(s.updates, e)
	switch e.Kind {
	case job.EventStepStart:
		s.started = true
	case job.EventStepEnd:
		s.ended, s.skipped = true, e.Status == job.StepSkipped
	case job.EventDropped:
		s.broken = true
	case job.EventOutput:
		s.bytes += int64(len(e.Data))
	}
}

func (s *step) breakAt(gap follow.Update) {
	s.broken = true
	s.updates = append(s.updates, gap)
}

// last returns the last n bytes of output, as a result would have them.
func (s *step) last(n int) string {
	var b []byte
	for i := len(s.updates) - 1; i >= 0 && len(b) < n; i-- {
		if e, ok := s.updates[i].(follow.Event); ok && e.Kind == job.EventOutput {
			b = append(bytes.Clone(e.Data), b...)
		}
	}
	return strings.ToValidUTF8(string(b), "\uFFFD")
}

// whole reports whether nothing of the step is missing.
func (s *step) whole() bool { return s != nil && s.ended && (s.started || s.skipped) && !s.broken }

// all is what there is, also of a step without events.
func (s *step) all() []follow.Update {
	if s == nil {
		return nil
	}
	return s.updates
}
