package natsqueue

import (
	"context"
	"errors"
	"fmt"
	"time"

	"slipway/job"
	"slipway/job/natsqueue/internal/jsconn"
)

const (
	// replayFirst is the first pause before the outbox is tried again. It doubles up to replayMost.
	replayFirst = time.Second
	replayMost  = 30 * time.Second
	// replayTime bounds one replay.
	replayTime = 15 * time.Second
)

// replays commits what the outbox of a worker keeps: at the start, what processes before this one left there, and later,
// what a commit of this one leaves. The record's compare-and-set decides, as for every commit: it takes a result only from
// the claim that it still stands for.
type replays struct {
	q    *Conn
	box  *outbox
	boot string
	// lease is this process's own of a job, or nil. Its commit goes on, and is not overtaken.
	lease func(job.ID) *lease
}

// run tries all results, again and again while there are some. It waits for the next one without a look at the disk.
func (r *replays) run(ctx context.Context) {
	for wait := replayFirst; ctx.Err() == nil; {
		again := r.q.js.Reconnected() // before the tries, or a reconnect in between is missed
		if r.all(ctx) == 0 {
			wait = replayFirst
			select {
			case <-r.box.saved:
			case <-ctx.Done():
			}
			continue
		}
		t := time.NewTimer(wait)
		select {
		case <-t.C:
			wait = min(2*wait, replayMost)
		case <-again:
			wait = replayFirst
		case <-ctx.Done():
		}
		t.Stop()
	}
}

// all tries each result once, and returns how many are left.
func (r *replays) all(ctx context.Context) (left int) {
	names, err := r.box.names()
	if err != nil {
		r.q.cfg.OnError(err)
		return 1
	}
	for _, name := range names {
		k, err := r.box.load(name)
		if err == nil && k == nil {
			continue
		}
		if err == nil {
			var done bool
			if done, err = r.one(ctx, k); done {
				continue
			}
		}
		if err != nil && ctx.Err() == nil && !jsconn.IsFull(err) && !errors.Is(err, job.ErrUnavailable) { // which was said when it was kept
			r.q.cfg.OnError(err)
		}
		left++
	}
	return left
}

// one commits k, or finds that it came too late. It reports whether that is done with.
func (r *replays) one(ctx context.Context, k *kept) (done bool, err error) {
	ctx, cancel := context.WithTimeout(ctx, replayTime)
	defer cancel()
	if alive, err := r.ownerLives(ctx, k); alive || err != nil {
		return false, err
	}
	v, err := r.q.records.load(ctx, k.ID)
	if err == nil {
		v, err = r.commit(ctx, k, v)
	}
	if err != nil {
		return false, fmt.Errorf("commit the kept result of job %s: %w", k.ID, err)
	}
	if !k.of(v.rec) || !v.rec.State.Final() {
		r.q.cfg.OnError(fmt.Errorf("the result of job %s, attempt %d, which was kept at %s, is dropped: %w: another attempt owns or decided the job",
			k.ID, k.Attempt, k.KeptAt.Format(time.RFC3339), job.ErrLeaseLost))
		return true, r.box.remove(k, func(u *OutboxUse) { u.Late++ })
	}
	if err := r.q.decisions.settle(ctx, k.ID, v, nil, nil); err != nil {
		return false, err // the file stays: it is the sign that this is not done
	}
	r.q.cfg.OnError(fmt.Errorf("the result of job %s, attempt %d, which the queue did not take at %s, is committed from the outbox",
		k.ID, k.Attempt, k.KeptAt.Format(time.RFC3339)))
	return true, r.box.remove(k, func(u *OutboxUse) { u.Committed++ })
}

// ownerLives reports whether the process that keeps k still tries to commit it. Workers may share a folder.
func (r *replays) ownerLives(ctx context.Context, k *kept) (bool, error) {
	if k.Boot == r.boot {
		l := r.lease(k.ID)
		return l != nil && l.d.Fence == k.Fence, nil
	}
	w, _, err := r.q.workers.get(ctx, k.Owner)
	return w != nil && w.Boot == k.Boot, err
}

// commit is that of a lease: it decides the job if the record still stands for the claim that k is of.
func (r *replays) commit(ctx context.Context, k *kept, v version) (version, error) {
	var fault error
	v, err := r.q.records.change(ctx, k.ID, v, func(rec *record) *record {
		if !k.of(rec) || rec.State != job.StateRunning {
			return nil
		}
		next := *rec
		if fault = r.q.decisions.deliver(k, &next); fault != nil {
			return nil
		}
		return &next
	}, func(rec *record) bool { return k.of(rec) && rec.State.Final() })
	if err != nil {
		return v, err
	}
	return v, fault
}

// deliver makes rec, which k is of, final with the kept result. It writes nothing.
func (d decisions) deliver(k *kept, rec *record) error {
	stands := *k.Result
	if rec.Cancel != 0 {
		cancelResult(&stands)
	}
	return d.conclude(k.ID, rec, &stands)
}
