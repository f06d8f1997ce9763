// Package eventtest makes a job's events for the tests of what prints them.
package eventtest

import (
	"time"

	"slipway/job"
)

// At is when the jobs of these events were submitted.
var At = time.Date(2027, 1, 31, 9, 0, 0, 0, time.UTC)

// New returns the event number seq, which came seq tenths of a second after At. change may be nil.
func New(seq uint64, kind job.EventKind, change func(*job.Event)) job.Event {
	e := job.Event{Generation: 1, Attempt: 1, Seq: seq, Kind: kind, Time: At.Add(time.Duration(seq) * 100 * time.Millisecond)}
	if change != nil {
		change(&e)
	}
	return e
}

// Output returns an event with output of a step.
func Output(seq uint64, stream, data string) job.Event {
	return New(seq, job.EventOutput, func(e *job.Event) { e.Stream, e.Data = stream, []byte(data) })
}

// ExitCode is a change for New: a step that ended with code n.
func ExitCode(n int) func(*job.Event) {
	return func(e *job.Event) {
		e.Status, e.ExitCode = job.StepSucceeded, &n
		if n != 0 {
			e.Status = job.StepFailed
		}
	}
}
