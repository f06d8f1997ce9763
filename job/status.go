package job

import (
	"slices"
	"time"
)

// State is where a job stands. The list is closed.
type State string

// The states. The last five are final within a generation.
const (
	StateScheduled State = "scheduled" // waits for its not_before, or for the end of a retry's delay
	StateQueued    State = "queued"
	StateRunning   State = "running"
	StateDone      State = "done" // succeeded
	StateFailed    State = "failed"
	StateTimedOut  State = "timed_out"
	StateCanceled  State = "canceled"
	StateErrored   State = "errored" // a dead letter may hold it
)

// Final reports whether s can't change any more within its generation.
func (s State) Final() bool {
	switch s {
	case StateDone, StateFailed, StateTimedOut, StateCanceled, StateErrored:
		return true
	}
	return false
}

// FinalState returns the state of a job with the outcome o.
func FinalState(o Outcome) State {
	if o == Succeeded {
		return StateDone
	}
	return State(o)
}

// Status is a job as the queue knows it.
type Status struct {
	ID     ID                `json:"id"`
	Name   string            `json:"name,omitempty"`
	Queue  string            `json:"queue"`
	Labels map[string]string `json:"labels,omitempty"`
	State  State             `json:"state"`
	// Generation counts from 1; each RequeueDead begins the next one, with a fresh Attempt and Counts.
	Generation int `json:"generation"`
	// Attempt is the number of the latest attempt; 0: no worker has claimed the job yet.
	Attempt int `json:"attempt"`
	// Fence is that of the latest claim; 0: there was none.
	Fence uint64 `json:"fence"`
	// Worker made the latest claim. It stays after the attempt's end.
	Worker string `json:"worker,omitempty"`
	// Cancel says that a user asked for the job's end.
	Cancel bool `json:"cancel_requested,omitempty"`
	// Reason is set in a final state only, and there unless the job succeeded.
	Reason Reason `json:"reason,omitempty"`
	// LastFailure says why the latest attempt that is tried again was given back. Nil: none was.
	LastFailure *Failure `json:"last_failure,omitempty"`
	// Counts says how often the job was charged.
	Counts Counts `json:"counts,omitzero"`
	// SubmittedAt is when the job was submitted.
	SubmittedAt time.Time `json:"submitted_at,omitzero"`
	// EligibleAt is SubmittedAt or, if later, the job's not_before or the end of the last retry's delay.
	EligibleAt time.Time `json:"eligible_at,omitzero"`
	// StartedAt is when the latest claim was made. Zero: there was none.
	StartedAt time.Time `json:"started_at,omitzero"`
	// FinishedAt is when the job was decided. It is set in a final state only.
	FinishedAt time.Time `json:"finished_at,omitzero"`
}

// ListQuery narrows a List. Zero fields match everything.
type ListQuery struct {
	Queue  string
	States []State
	// Labels are those that a job must have, with these values. It may have more.
	Labels map[string]string
	// Since leaves out the jobs that were submitted before it.
	Since time.Time
	// Limit bounds the number of jobs. Zero means 100.
	Limit int
}

// Matches reports whether a list that q narrows shows s. Limit is no matter of a single job.
func (q ListQuery) Matches(s Status) bool {
	for k, v := range q.Labels {
		if have, ok := s.Labels[k]; !ok || have != v {
			return false
		}
	}
	return (q.Queue == "" || q.Queue == s.Queue) && (len(q.States) == 0 || slices.Contains(q.States, s.State)) && !s.SubmittedAt.Before(q.Since)
}

// DeadLetter is a job that slipway gave up on, kept with all that is needed to
// understand it and to run it again.
type DeadLetter struct {
	ID    ID     `json:"id"`
	Queue string `json:"queue"`
	// Generation is the one that was given up.
	Generation int `json:"generation"`
	// At is when the letter was kept.
	At time.Time `json:"at"`
	// Spec is the encoded job as it was submitted. Decode it with Decode: the job may be dead because it is none.
	Spec []byte `json:"spec"`
	// Status is the job as it was when it was given up, without labels, which are in Spec.
	Status Status `json:"status"`
	// Result is how that generation ended. Nil if the queue keeps it no more.
	Result *Result `json:"result"`
}
