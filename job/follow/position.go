package follow

import (
	"cmp"

	"slipway/job"
)

// position is how far the events of a job were yielded. The zero value is the beginning.
type position struct {
	generation, attempt int
	seq                 uint64 // the last number of that attempt, 0 without one
	finished            int    // the last generation whose end was yielded
}

// after is the position behind e.
func after(e job.Event) position {
	p := position{generation: e.Generation, attempt: e.Attempt, seq: e.Seq}
	if e.Kind == job.EventFinished {
		p.finished = e.Generation
	}
	return p
}

// next returns what to yield for e: nothing if e was yielded before or belongs to an
// earlier attempt, else e itself, after a Gap if events before it are missing.
//
// The end of a generation is known by its kind, not by its number: a queue that has lost the
// events of an attempt makes the end from the result and numbers it 1, also for a reader who
// has seen later numbers.
func (p *position) next(e job.Event) []Update {
	order := cmp.Or(cmp.Compare(e.Generation, p.generation), cmp.Compare(e.Attempt, p.attempt))
	end := e.Kind == job.EventFinished
	switch {
	case order < 0:
		return nil
	case end && e.Generation <= p.finished:
		return nil
	case !end && order == 0 && e.Seq <= p.seq:
		return nil
	case order > 0:
		p.generation, p.attempt, p.seq = e.Generation, e.Attempt, 0
	}
	if end {
		p.finished = e.Generation
	}
	last := p.seq
	p.seq = max(last, e.Seq)
	gap := Gap{Generation: e.Generation, Attempt: e.Attempt}
	switch {
	case e.Seq > last+1:
		gap.Missing = e.Seq - last - 1
	case end && last == 0 && e.Attempt > 0: // a worker sends at least the beginning of an attempt
	default:
		return []Update{Event{e}}
	}
	return []Update{gap, Event{e}}
}
