package job

import (
	"encoding/json"
	"time"
)

// EventKind says what an Event reports. The list is closed.
type EventKind string

// The kinds of events, in the order in which a job meets them.
const (
	EventClaimed   EventKind = "claimed"    // a worker took the job
	EventPhase     EventKind = "phase"      // a phase began: Text is its name as in Phases
	EventStepStart EventKind = "step_start" // Step, Name; Text is the beginning of what it does
	EventOutput    EventKind = "output"     // Step, Stream, Data
	EventStepRetry EventKind = "step_retry" // a try of a step failed and another will follow: Step, Name, Status, ExitCode, Signal, Reason, Text, Tries so far, NotBefore
	EventStepEnd   EventKind = "step_end"   // Step, Name, Status, ExitCode, Signal, Reason, Text, Tries, Leftovers, Cut, Truncated, TruncatedLines
	EventDropped   EventKind = "dropped"    // Step, Bytes of whose output with Lines line ends were not sent: Text says why
	EventRetry     EventKind = "retry"      // the attempt ended and another will follow: Reason, Text, Class, Left, NotBefore
	EventFinished  EventKind = "finished"   // the result is committed: Outcome, Reason
)

// Event is a piece of news of an attempt. Events are sent in batches, in order,
// at most once and without guarantee: what must not be lost stands in the Result.
type Event struct {
	JobID      ID        `json:"job_id"`
	Generation int       `json:"generation"`
	Attempt    int       `json:"attempt"`
	Fence      uint64    `json:"fence"`
	Seq        uint64    `json:"seq"` // from 1, without gaps within an attempt
	Time       time.Time `json:"time,omitzero"`
	Kind       EventKind `json:"kind"`

	Step     int        `json:"step,omitempty"` // index from 0; in JSON of the kinds about a step only, 0 included
	Name     string     `json:"name,omitempty"` // the step's name
	Stream   string     `json:"stream,omitempty"`
	Data     []byte     `json:"data,omitempty"` // raw output: not necessarily UTF-8
	Status   StepStatus `json:"status,omitempty"`
	ExitCode *int       `json:"exit_code,omitempty"`
	Signal   string     `json:"signal,omitempty"` // as in StepResult
	Tries    int        `json:"tries,omitempty"`  // as in StepResult
	Bytes    int64      `json:"bytes,omitempty"`
	Lines    int64      `json:"lines,omitempty"`
	Outcome  Outcome    `json:"outcome,omitempty"`
	Reason   Reason     `json:"reason,omitempty"`
	Text     string     `json:"text,omitempty"`

	// Leftovers is as in StepResult.
	Leftovers int `json:"leftovers,omitempty"`
	// Cut is as in Output.
	Cut bool `json:"cut,omitempty"`
	// Truncated and TruncatedLines are as in Output. A log with a gap is known at the end of its step, before it is stored.
	Truncated      int64 `json:"truncated,omitempty"`
	TruncatedLines int64 `json:"truncated_lines,omitempty"`
	// Class pays for the attempt that ended.
	Class Class `json:"class,omitempty"`
	// Left is how many more attempts Class can pay for, the next one among them. Zero with a class that costs nothing.
	Left int `json:"left,omitempty"`
	// NotBefore is when the next attempt, or the next try of a step, can begin at the earliest. Zero: at once.
	NotBefore time.Time `json:"not_before,omitzero"`
}

// MarshalJSON writes step 0 as well, in the events about a step: to leave it out would say that there is none.
func (e Event) MarshalJSON() ([]byte, error) {
	type fields Event
	out := struct {
		fields
		Step *int `json:"step,omitempty"`
	}{fields: fields(e)}
	switch e.Kind {
	case EventStepStart, EventOutput, EventDropped, EventStepRetry, EventStepEnd:
		out.Step = &e.Step
	}
	return json.Marshal(out)
}
