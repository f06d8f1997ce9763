package display

import (
	"time"

	"slipway/job"
)

var at = time.Date(2027, 1, 31, 9, 0, 0, 0, time.UTC)

func news(seq uint64, kind job.EventKind, change func(*job.Event)) job.Event {
	e := job.Event{Generation: 1, Attempt: 1, Seq: seq, Kind: kind, Time: at.Add(time.Duration(seq) * 100 * time.Millisecond)}
	if change != nil {
		change(&e)
	}
	return e
}

func output(seq uint64, stream, data string) job.Event {
	return news(seq, job.EventOutput, func(e *job.Event) { e.Stream, e.Data = stream, []byte(data) })
}

func code(n int) func(*job.Event) {
	return func(e *job.Event) {
		e.Status, e.ExitCode = job.StepSucceeded, &n
		if n != 0 {
			e.Status = job.StepFailed
		}
	}
}
