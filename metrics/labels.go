package metrics

import (
	"slices"
	"strings"

	"slipway/job"
)

const (
	// other is counted in place of a value that is not on its label's list.
	other = "other"
	// none is the reason of a job that succeeded. An empty value would be the same as no label to Prometheus.
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

// lists holds the closed lists of label values.
type lists struct {
	outcomes, reasons, classes, statuses, phases, directions, actions, losses, drops, queues list
}

// newLists makes the lists. queues are those that the worker serves, in which other stands for all the rest.
func newLists(queues []string) lists {
	served := list{}
	for _, q := range queues[:min(len(queues), maxQueues-1)] {
		served = append(served, strings.ToValidUTF8(q, "?"))
	}
	return lists{
		queues:     append(served, other),
		outcomes:   words(job.Outcomes()...),
		reasons:    append(words(job.Reasons()...), none),
		classes:    words(job.ClassJob, job.ClassInfra, job.ClassCrash, job.ClassShutdown),
		statuses:   words(job.StepSucceeded, job.StepFailed, job.StepTimedOut, job.StepCanceled, job.StepErrored, job.StepSkipped),
		phases:     list{"pull_image", "create", "pull_workspace", "steps", "push_workspace", "cleanup"},
		directions: list{"pull", "push"},
		actions:    list{"added", "modified", "deleted", "restored"},
		drops:      list{"limit", "slow", "queue", "box"},
		losses:     list{"limit", "no_store", "store", "disk", "try", "box"},
	}
}

// reason returns the label of r.
func (l lists) reason(r job.Reason) string {
	if r == "" {
		return none
	}
	return l.reasons.label(string(r))
}
