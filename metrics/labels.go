package metrics

import (
	"slices"

	"slipway/job"
)

const (
	// other stands for every word that is not on a label's list.
	other = "other"
	// none is the reason of a job that succeeded: Prometheus can't tell an empty label from a missing one.
	none = "none"
)

// list is the closed list of a label's values.
type list []string

// words makes a list of values of a string type.
func words[T ~string](values ...T) list {
	l := make(list, len(values))
	for i, v := range values {
		l[i] = string(v)
	}
	return l
}

// label returns v if it is on the list, and other if not.
func (l list) label(v string) string {
	if slices.Contains(l, v) {
		return v
	}
	return other
}

// lists holds the values of every label. It is built once for each Recorder.
type lists struct {
	outcomes, reasons, classes, statuses, phases, directions, actions list
}

func newLists() lists {
	return lists{
		outcomes:   words(job.Outcomes()...),
		reasons:    append(words(job.Reasons()...), none),
		classes:    words(job.ClassJob, job.ClassInfra, job.ClassCrash, job.ClassShutdown),
		statuses:   words(job.StepSucceeded, job.StepFailed, job.StepTimedOut, job.StepCanceled, job.StepErrored, job.StepSkipped),
		phases:     list{"pull_image", "create", "pull_workspace", "steps", "push_workspace", "cleanup"},
		directions: list{"pull", "push"},
		actions:    list{"added", "modified", "deleted", "restored"},
	}
}

// reason returns the label of r.
func (l lists) reason(r job.Reason) string {
	if r == "" {
		return none
	}
	return l.reasons.label(string(r))
}
