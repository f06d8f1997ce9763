package natsqueue

import (
	"bytes"
	"context"
	"fmt"
	"time"

	"github.com/nats-io/nats.go/jetstream"

	"slipway/internal/pause"
	"slipway/job"
	"slipway/job/natsqueue/internal/jsconn"
)

// stopTime is how long Next waits after the end of its context for a claim that is under way. Mostly the claim has been
// made and given back by then.
const stopTime = time.Second

// claimFor claims the job of msg for a slot that waits until ctx ends. It returns nil if the job is not the slot's.
//
// A claim is never cut short: whether its record was written would be unknown, and the job would pay for a crashed worker.
// So a claim that a silent server delays goes on after stopTime without its slot, and then gives the job back.
func (k *Consumer) claimFor(ctx context.Context, msg jetstream.Msg) *lease {
	claimed, ended := make(chan *lease), make(chan struct{})
	k.claims.Go(func() {
		defer close(ended)
		k.tryClaim(ctx, msg, claimed)
	})
	select {
	case l := <-claimed:
		return l
	case <-ended:
		return nil
	case <-ctx.Done():
	}
	select {
	case <-ended:
	case <-time.After(stopTime):
	}
	return nil
}

// tryClaim hands the lease of msg's job to the slot. It gives back what comes after the end of ctx.
func (k *Consumer) tryClaim(ctx context.Context, msg jetstream.Msg, claimed chan<- *lease) {
	if ctx.Err() != nil {
		k.fetch.giveBack(ctx, msg)
		return
	}
	l, err := k.claim(ctx, msg)
	if err != nil {
		// The token comes again by itself; the worker that gets it then tries anew.
		k.q.cfg.OnError(k.q.rooms.explain(ctx, err))
	}
	if jsconn.IsFull(err) {
		// Without this pause a free slot would try one waiting job after the other. It was charged for nothing.
		k.fetch.giveBackLater(ctx, msg, fullDelay)
		pause.For(ctx, fullDelay)
	}
	if l == nil {
		return
	}
	if ctx.Err() == nil {
		select {
		case claimed <- l:
			return
		case <-ctx.Done():
		}
	}
	releaseCtx, cancel := context.WithTimeout(context.WithoutCancel(ctx), giveBackTime)
	defer cancel()
	if err := l.Release(releaseCtx); err != nil {
		k.q.cfg.OnError(err)
	}
}

// claimTime bounds one claim.
const claimTime = 15 * time.Second

// claim makes this worker the owner of the job that msg stands for. It returns nil
// if the token needed something else: then that is done.
func (k *Consumer) claim(ctx context.Context, msg jetstream.Msg) (*lease, error) {
	began := time.Now()
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), claimTime)
	defer cancel()
	meta, err := msg.Metadata()
	if err != nil {
		return nil, fmt.Errorf("claim: %w", err)
	}
	t, ok := k.q.tokens.parse(msg.Subject(), msg.Headers(), msg.Data(), meta.Timestamp)
	if !ok {
		return nil, fmt.Errorf("claim: unexpected subject %.200q", msg.Subject())
	}
	if id, err := job.ParseID(string(t.id)); err != nil || id != t.id {
		return nil, k.refuse(ctx, t, msg)
	}
	if !k.reserve(t.id) {
		return nil, k.q.js.Nak(ctx, msg, k.q.cfg.Timing.AckWait/2)
	}
	defer k.unreserve(t.id)
	// A message of another job under this id is no redelivery of the lease's.
	if l := k.lease(t.id); l != nil && bytes.Equal(l.token.spec, t.spec) && l.adopt(msg, k.q.cfg.Timing.Lease) {
		return nil, nil
	}
	l, err := k.contend(ctx, t, msg, began)
	if err != nil {
		return nil, fmt.Errorf("claim job %s: %w", t.id, err)
	}
	return l, nil
}

// reserve keeps two slots from claiming one job at once, by two tokens: each slot would take the other's claim for an
// earlier one of this worker, whose lease was lost.
func (k *Consumer) reserve(id job.ID) bool {
	k.mu.Lock()
	defer k.mu.Unlock()
	if k.claiming[id] {
		return false
	}
	k.claiming[id] = true
	return true
}

func (k *Consumer) unreserve(id job.ID) {
	k.mu.Lock()
	defer k.mu.Unlock()
	delete(k.claiming, id)
}

// refuse settles a token whose name is no id. It can have neither a record nor a box, so only a result is published.
func (k *Consumer) refuse(ctx context.Context, t token, msg jetstream.Msg) error {
	r := &job.Result{
		Version: job.Version, Worker: k.cfg.Worker,
		Outcome: job.Errored, Reason: job.ReasonSpecInvalid, FinishedAt: time.Now().UTC(),
		Message: fmt.Sprintf("the last part of the subject, %.60q, is no job id: want a ULID in upper case", t.id),
	}
	rec := t.record()
	if err := k.q.decisions.conclude(t.id, rec, r); err != nil {
		return err
	}
	return k.q.decisions.settle(ctx, t.id, version{rec: rec}, t.spec, msg)
}

// action is what a claim does with a record.
type action int

const (
	actionTake     action = iota // the job becomes this worker's
	actionPostpone               // another worker works on the job, or its time has not come
	actionConclude               // the claim itself decides the job
	actionSettle                 // the job is decided already
	actionDiscard                // the token is another job's, whose id was taken
)

// contend claims by compare-and-set.
func (k *Consumer) contend(ctx context.Context, t token, msg jetstream.Msg, began time.Time) (*lease, error) {
	v, err := k.q.records.load(ctx, t.id)
	if err != nil {
		return nil, err
	}
	var (
		what  action
		delay time.Duration
		fault error
		fence uint64
		boot  string
	)
	own := t.record()
	v, err = k.q.records.change(ctx, t.id, v, func(rec *record) *record {
		if rec == nil {
			rec = own
		}
		if fault = rec.Spec.Compare(t.id, own.Spec); fault != nil {
			what = actionDiscard
			return nil
		}
		var next *record
		what, next, delay, fault = k.judge(ctx, t.id, rec)
		if next != nil {
			fence, boot = next.Fence, next.Boot
		}
		return next
	}, func(rec *record) bool { return rec.Fence == fence && rec.Boot == boot })
	switch {
	case err != nil:
		return nil, err
	case what == actionDiscard:
		k.q.cfg.OnError(fmt.Errorf("a message was dropped: %w", fault))
		return nil, k.q.js.Ack(ctx, msg)
	case fault != nil:
		return nil, fault
	case what == actionPostpone:
		return nil, k.q.js.Nak(ctx, msg, delay)
	case what == actionConclude:
		return nil, k.newLease(t, msg, v, began).settleUnrun(ctx, v)
	case what == actionSettle:
		return nil, k.q.decisions.settle(ctx, t.id, v, t.spec, msg)
	}
	l := k.newLease(t, msg, v, began)
	l.deliver(v.rec.Cancel)
	k.remember(l)
	return l, nil
}

// judge chooses the action of a claim of rec, and the record that results from it.
func (k *Consumer) judge(ctx context.Context, id job.ID, rec *record) (action, *record, time.Duration, error) {
	if rec.State.Final() {
		return actionSettle, nil, 0, nil
	}
	owner := ownerGone
	if rec.State == job.StateRunning {
		var err error
		if owner, err = k.owner(ctx, id, rec); err != nil {
			return actionPostpone, nil, 0, err
		}
		if owner == ownerWorks {
			return actionPostpone, nil, k.q.cfg.Timing.AckWait / 2, nil
		}
		// The job need not run again if this worker keeps its result, of this process or of one before.
		if kept := k.outbox.of(id, rec); kept != nil {
			next := *rec
			if err := k.q.decisions.deliver(kept, &next); err != nil {
				return actionPostpone, nil, 0, err
			}
			return actionConclude, &next, 0, nil
		}
	} else if rest := time.Until(rec.NotBefore); rest > 0 && rec.Cancel == 0 {
		return actionPostpone, nil, rest + time.Millisecond, nil
	}
	next := k.inherit(rec, owner)
	if err := exhausted(k.q.decisions, k.q.cfg.CrashBudget, id, next); err != nil {
		return actionPostpone, nil, 0, err
	}
	if next.State.Final() {
		return actionConclude, next, 0, nil
	}
	return actionTake, next, 0, nil
}

func (k *Consumer) newLease(t token, msg jetstream.Msg, v version, began time.Time) *lease {
	l := &lease{
		k: k, rec: v, msg: msg, token: t, confirmed: began, canceled: make(chan job.CancelMode, int(job.Abort)),
		d: job.Delivery{
			ID: t.id, Queue: v.rec.Queue, Generation: v.rec.Generation, Attempt: v.rec.Attempt, Fence: v.rec.Fence,
			Worker: k.cfg.Worker, ClaimedAt: began, Spec: t.spec, SubmittedAt: v.rec.SubmittedAt, EligibleAt: v.rec.eligible(), Counts: v.rec.Counts,
		},
	}
	l.events.q, l.events.d = k.q, &l.d
	return l
}
