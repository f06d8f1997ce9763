package runner

import (
	"fmt"
	"time"

	"slipway/job"
)

// maxBackoff bounds every delay between two tries.
const maxBackoff = 5 * time.Minute

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
	left    int     // how many attempts class can still pay for, of a requeue
	verdict verdict // what to commit, or to note as the last failure
}

// budgets are the limits that a decision depends on.
type budgets struct {
	retry   job.Retry     // the job's own
	infra   int           // infrastructure failures that a job survives; negative: none
	backoff time.Duration // after the first of them
	jitter  float64       // from [0, 1)
}

// decide says what becomes of a job whose attempt ended with v. Each class of
// failure pays from a budget of its own; a shutdown costs nothing, and a lost
// lease is none of our business any more.
func decide(v verdict, counts job.Counts, b budgets) decision {
	d := decision{verdict: v, class: v.reason.Class()}
	switch {
	case v.reason == job.ReasonLeaseLost:
		d.next = nextDrop
	case d.class == job.ClassShutdown:
		d.next = nextRelease
	case v.final:
	case d.class == job.ClassJob && counts.Job+1 < b.retry.Attempts:
		d.next = nextRequeue
		d.delay, d.left = backoff(b.retry.Backoff.Std(), counts.Job), b.retry.Attempts-counts.Job-1
	case d.class == job.ClassInfra && counts.Infra < b.infra:
		d.next = nextRequeue
		d.delay, d.left = jittered(backoff(b.backoff, counts.Infra), b.jitter), b.infra-counts.Infra
	case d.class == job.ClassInfra:
		d.verdict = verdict{
			outcome: job.Errored, reason: job.ReasonInfraBudget,
			message: fmt.Sprintf("%d infrastructure failures; the last one (%s): %s", counts.Infra+1, v.reason, v.message),
		}
	}
	return d
}

// backoff doubles first with each earlier try, up to maxBackoff.
func backoff(first time.Duration, earlier int) time.Duration {
	d := max(first, 0)
	for range earlier {
		if d >= maxBackoff {
			break
		}
		d *= 2
	}
	return min(d, maxBackoff)
}

// jittered spreads d over its upper half, so that the jobs that one outage
// stopped don't all come back in the same second.
func jittered(d time.Duration, jitter float64) time.Duration {
	return d/2 + time.Duration(float64(d/2)*jitter)
}
