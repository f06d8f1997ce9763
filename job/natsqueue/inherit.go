package natsqueue

import (
	"context"
	"fmt"
	"time"

	"slipway/job"
)

// owner is what became of the owner of a running record.
type owner int

const (
	ownerGone  owner = iota // its process is gone, as far as the queue knows
	ownerIdles              // its process lives, and works on this claim no more
	ownerWorks              // it may still work on this claim
)

// owner finds out what became of the owner of rec.
func (k *Consumer) owner(ctx context.Context, id job.ID, rec *record) (owner, error) {
	if rec.Owner == k.cfg.Worker {
		switch {
		case rec.Boot == k.boot:
			// A living lease of this process would have adopted the token, and reserve admits one claim at a time.
			return ownerIdles, nil
		case time.Since(k.presence.tookOver) < k.q.cfg.Timing.DeadMan:
			return ownerWorks, nil // the boxes of the process before may outlive it for a while
		}
		return ownerGone, nil
	}
	// A server that was away delivers the tokens in work again, and has lost the entries of the living workers. Until a
	// lease has passed, the owner may be as alive as this worker.
	if k.q.js.ReconnectedWithin(k.q.cfg.Timing.Lease) {
		return ownerWorks, nil
	}
	w, _, err := k.q.workers.get(ctx, rec.Owner)
	switch {
	case err != nil || w == nil || w.Boot != rec.Boot:
		return ownerGone, err
	case w.runs(id, rec.Fence), time.Since(rec.StartedAt).Abs() < k.q.cfg.Timing.Lease:
		return ownerWorks, nil // a claim of a moment ago may not stand in the worker's entry yet
	}
	return ownerIdles, nil
}

// inherit makes the record that this worker would own. A crash is charged only for an owner whose process is gone: a lease
// that was lost while the server was away, by a worker that lives, says nothing about the job.
func (k *Consumer) inherit(rec *record, was owner) *record {
	next := *rec
	if rec.State == job.StateRunning {
		why := "died"
		if was == ownerGone {
			next.Counts.Crash++
		} else {
			why = "lost its lease"
			next.Counts.Infra++
		}
		next.LastFailure = &job.Failure{Outcome: job.Errored, Reason: job.ReasonLeaseLost, Message: "worker " + rec.Owner + " " + why}
	}
	next.State, next.Owner, next.Boot = job.StateRunning, k.cfg.Worker, k.boot
	next.Fence++
	next.Attempt++
	next.StartedAt = time.Now().UTC()
	return &next
}

// exhausted decides next at once if nobody should run it again: a user asked for
// its end, or it killed too many workers.
func exhausted(d decisions, budget int, id job.ID, next *record) error {
	r := &job.Result{Version: job.Version, Outcome: job.Canceled, Reason: job.ReasonCanceledByUser, Message: "canceled by a user before it ran again"}
	if next.Cancel == 0 {
		if next.Counts.Crash <= budget {
			return nil
		}
		r.Outcome, r.Reason = job.Errored, job.ReasonCrashBudget
		r.Message = fmt.Sprintf("%d workers died while they ran this job (budget %d)", next.Counts.Crash, budget)
	}
	next.Attempt-- // it does not run again
	return d.conclude(id, next, r)
}
