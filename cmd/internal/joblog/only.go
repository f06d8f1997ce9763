package joblog

import (
	"fmt"
	"strconv"
	"strings"

	"slipway/internal/suggest"
	"slipway/job"
	"slipway/job/follow"
)

// NoStepError says that a job has no step of a name or number.
type NoStepError struct {
	Step  string
	Names []string // of the steps that it has
}

// Error names the steps that there are.
func (e *NoStepError) Error() string {
	return fmt.Sprintf("the job has no step %q%s; its steps are %s", e.Step, suggest.DidYouMean(suggest.Nearest(e.Step, e.Names)), strings.Join(e.Names, ", "))
}

// only passes on what is about one step. A name wins over a number.
type only struct {
	Sink
	step  string
	index int // -1: not known yet
}

// newOnly finds the step in what is known of the job so far. A job that goes on may come to it later.
func newOnly(step string, r *job.Result, updates []follow.Update, to Sink) (*only, error) {
	o := &only{Sink: to, step: step, index: -1}
	var names []string
	meet := func(index int, name string) {
		names = append(names, name)
		o.meet(index, name)
	}
	if r != nil {
		for _, s := range r.Steps {
			meet(s.Index, s.Name)
		}
	}
	for _, u := range updates {
		if e, ok := u.(follow.Event); ok && (e.Kind == job.EventStepStart || e.Kind == job.EventStepEnd) {
			o.meet(e.Step, e.Name)
		}
	}
	if o.index >= 0 {
		return o, nil
	}
	number, err := strconv.Atoi(step)
	if err == nil && number > 0 && (r == nil || number <= len(r.Steps)+r.StepsElided) {
		o.index = number - 1
		return o, nil
	}
	if r != nil {
		return nil, &NoStepError{Step: step, Names: names}
	}
	return o, nil
}

func (o *only) meet(index int, name string) {
	if o.index < 0 && name == o.step {
		o.index = index
	}
}

func (o *only) wants(index int) bool { return index == o.index }

// Event passes e on if it is about the step.
func (o *only) Event(e job.Event) {
	if e.Kind == job.EventStepStart || e.Kind == job.EventStepEnd {
		o.meet(e.Step, e.Name)
	}
	if _, ok := stepOf(e, e.Step); ok && o.wants(e.Step) {
		o.Sink.Event(e)
	}
}
