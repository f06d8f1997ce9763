package runner

import (
	"fmt"
	"time"

	"slipway/job"
	"slipway/runner/internal/backoff"
	"slipway/runner/internal/verdict"
)

// next is what becomes of a job after an attempt.
type next int

const (
	nextCommit  next = iota // the verdict is the result
	nextRequeue             // another attempt, after a delay, charged to a class
	nextRelease             // another attempt at once, at no cost
	nextDrop                // the job is somebody else's: say nothing
)

// decision is a next with what it needs.
type decision struct {
	next    next
	class   job.Class
	delay   time.Duration
	left    int             // how many attempts class can still pay for, of a requeue
	verdict verdict.Verdict // what to commit, or to note as the last failure
}

// budgets are the limits that a decision depends on.
type budgets struct {
	retry   job.Retry     // the job's own
	infra   int           // infrastructure failures that a job survives; negative: none
	backoff time.Duration // after the first of them
	jitter  float64       // from [0, 1)
	// untouched: the engine was away before anything was done for the job, so that the job can't be the cause.
	untouched bool
}

// decide says what becomes of a job whose attempt ended with v. Each class of
// failure pays from a budget of its own; a shutdown costs nothing, and a lost
// lease is another worker's business.
func decide(v verdict.Verdict, counts job.Counts, b budgets) decision {
	d := decision{verdict: v, class: v.Reason.Class()}
	switch {
	case v.Reason == job.ReasonLeaseLost:
		d.next = nextDrop
	case d.class == job.ClassShutdown:
		d.next = nextRelease
	case d.class == job.ClassInfra && b.untouched:
		d.next, d.left = nextRelease, max(b.infra-counts.Infra, 0)
	case v.Final:
	case d.class == job.ClassJob && counts.Job+1 < b.retry.Attempts:
		d.next = nextRequeue
		d.delay, d.left = backoff.Delay(b.retry.Backoff.Std(), counts.Job), b.retry.Attempts-counts.Job-1
	case d.class == job.ClassInfra && counts.Infra < b.infra:
		d.next = nextRequeue
		d.delay, d.left = backoff.Jittered(backoff.Delay(b.backoff, counts.Infra), b.jitter), b.infra-counts.Infra
	case d.class == job.ClassInfra:
		d.verdict = verdict.Of(job.ReasonInfraBudget,
			fmt.Sprintf("%d infrastructure failures; the last one (%s): %s", counts.Infra+1, v.Reason, v.Message))
	}
	return d
}
