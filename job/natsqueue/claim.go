package natsqueue

import (
	"context"
	"fmt"
	"time"

	"github.com/nats-io/nats.go/jetstream"

	"slipway/job"
)

// claimTime bounds one claim.
const claimTime = 15 * time.Second

// claim makes this worker the owner of the job that msg stands for. It returns nil
// if the token needed something else, which is done then.
func (k *Consumer) claim(ctx context.Context, msg jetstream.Msg) (*lease, error) {
	began := time.Now()
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), claimTime)
	defer cancel()
	meta, err := msg.Metadata()
	if err != nil {
		return nil, fmt.Errorf("claim: %w", err)
	}
	t, ok := k.conn.newToken(msg.Subject(), msg.Headers(), msg.Data(), meta.Timestamp)
	if !ok {
		return nil, fmt.Errorf("claim: unexpected subject %.200q", msg.Subject())
	}
	if id, err := job.ParseID(string(t.id)); err != nil || id != t.id {
		return nil, k.refuse(ctx, t, msg)
	}
	if !k.reserve(t.id) {
		return nil, k.conn.nak(ctx, msg, k.conn.cfg.Timing.AckWait/2)
	}
	defer k.unreserve(t.id)
	if l := k.lease(t.id); l != nil && l.adopt(msg, k.conn.cfg.Timing.Lease) {
		return nil, nil
	}
	l, err := k.contend(ctx, t, msg, began)
	if err != nil {
		return nil, fmt.Errorf("claim job %s: %w", t.id, err)
	}
	return l, nil
}

// reserve keeps two slots from claiming one job at once, by two tokens: each would
// take the other's claim for one that was lost.
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

// refuse deals with a token whose name is no id: it can have neither a record nor a
// box, so its result is all there will be.
func (k *Consumer) refuse(ctx context.Context, t token, msg jetstream.Msg) error {
	r := &job.Result{
		Version: job.Version, Worker: k.cfg.Worker,
		Outcome: job.Errored, Reason: job.ReasonSpecInvalid, FinishedAt: time.Now().UTC(),
		Message: fmt.Sprintf("the last part of the subject, %.60q, is no job id: want a ULID in upper case", t.id),
	}
	rec := t.record()
	if err := conclude(t.id, rec, r, k.conn.resultLimit()); err != nil {
		return err
	}
	return k.conn.settle(ctx, t.id, rec, t.spec, msg)
}

// verdict is what a claim does with a record.
type verdict int

const (
	claimIt    verdict = iota
	leaveIt            // somebody works on it, or its time has not come
	concludeIt         // it becomes decided by this very claim
	settleIt           // it is decided
)

// contend claims by compare-and-set.
func (k *Consumer) contend(ctx context.Context, t token, msg jetstream.Msg, began time.Time) (*lease, error) {
	v, err := k.conn.load(ctx, t.id)
	if err != nil {
		return nil, err
	}
	var (
		what  verdict
		delay time.Duration
		fault error
		fence uint64
	)
	v, err = k.conn.change(ctx, t.id, v, func(rec *record) *record {
		if rec == nil {
			rec = t.record()
		}
		var next *record
		what, next, delay, fault = k.judge(ctx, t.id, rec)
		if next != nil {
			fence = next.Fence
		}
		return next
	}, func(rec *record) bool { return rec.Fence == fence && rec.Boot == k.boot })
	switch {
	case err != nil:
		return nil, err
	case fault != nil:
		return nil, fault
	case what == leaveIt:
		return nil, k.conn.nak(ctx, msg, delay)
	case what == concludeIt:
		return nil, k.newLease(t, msg, v, began).settleUnrun(ctx, v.rec)
	case what == settleIt:
		return nil, k.conn.settle(ctx, t.id, v.rec, t.spec, msg)
	}
	return k.hold(t, msg, v, began), nil
}

// judge says what a claim of rec does, and what rec becomes by it.
func (k *Consumer) judge(ctx context.Context, id job.ID, rec *record) (verdict, *record, time.Duration, error) {
	if rec.State.Final() {
		return settleIt, nil, 0, nil
	}
	if rec.State == job.StateRunning {
		live, err := k.alive(ctx, id, rec)
		if err != nil {
			return leaveIt, nil, 0, err
		}
		if live {
			return leaveIt, nil, k.conn.cfg.Timing.AckWait / 2, nil
		}
	} else if rest := time.Until(rec.NotBefore); rest > 0 && rec.Cancel == 0 {
		return leaveIt, nil, rest + time.Millisecond, nil
	}
	next := k.inherit(rec)
	if err := k.exhausted(id, next); err != nil {
		return leaveIt, nil, 0, err
	}
	if next.State.Final() {
		return concludeIt, next, 0, nil
	}
	return claimIt, next, 0, nil
}

// inherit makes the record that this worker would own.
func (k *Consumer) inherit(rec *record) *record {
	next := *rec
	if rec.State == job.StateRunning {
		if rec.Owner == k.cfg.Worker && rec.Boot == k.boot {
			next.Counts.Infra++ // our own lease, which was lost for want of a confirmation
			next.LastFailure = &job.Failure{Outcome: job.Errored, Reason: job.ReasonLeaseLost, Message: "worker " + rec.Owner + " lost its lease"}
		} else {
			next.Counts.Crash++
			next.LastFailure = &job.Failure{Outcome: job.Errored, Reason: job.ReasonLeaseLost, Message: "worker " + rec.Owner + " died or hung"}
		}
	}
	next.State, next.Owner, next.Boot = job.StateRunning, k.cfg.Worker, k.boot
	next.Fence++
	next.Attempt++
	next.StartedAt = time.Now().UTC()
	return &next
}

// exhausted decides next at once if nobody should run it again: a user asked for
// its end, or it killed too many workers.
func (k *Consumer) exhausted(id job.ID, next *record) error {
	r := &job.Result{Version: job.Version, Outcome: job.Canceled, Reason: job.ReasonCanceledByUser, Message: "canceled by a user before it ran again"}
	if next.Cancel == 0 {
		if next.Counts.Crash <= k.conn.cfg.CrashBudget {
			return nil
		}
		r.Outcome, r.Reason = job.Errored, job.ReasonCrashBudget
		r.Message = fmt.Sprintf("%d workers died or hung while they ran this job (budget %d)", next.Counts.Crash, k.conn.cfg.CrashBudget)
	}
	next.Attempt-- // it does not run again
	return conclude(id, next, r, k.conn.resultLimit())
}

func (k *Consumer) newLease(t token, msg jetstream.Msg, v version, began time.Time) *lease {
	return &lease{
		k: k, rec: v, msg: msg, token: t, confirmed: began, canceled: make(chan job.CancelMode, int(job.Abort)),
		d: job.Delivery{
			ID: t.id, Queue: v.rec.Queue, Generation: v.rec.Generation, Attempt: v.rec.Attempt, Fence: v.rec.Fence,
			Worker: k.cfg.Worker, ClaimedAt: began, Spec: t.spec, SubmittedAt: v.rec.SubmittedAt, EligibleAt: v.rec.eligible(), Counts: v.rec.Counts,
		},
	}
}

// hold puts the claimed job on the running list.
func (k *Consumer) hold(t token, msg jetstream.Msg, v version, began time.Time) *lease {
	l := k.newLease(t, msg, v, began)
	l.deliver(v.rec.Cancel)
	k.mu.Lock()
	k.running[t.id] = l
	k.mu.Unlock()
	k.announce()
	return l
}
