package natsqueue

import (
	"context"
	"fmt"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"slipway/job"
)

// janitorKey is held by the one worker that repairs. It starts with what no worker's name can.
const janitorKey = "_janitor"

// janitorEvery is how often it looks, in AckWaits: what is on its way between two
// streams arrives within a few.
const janitorEvery = 5

// janitor looks after records that wait or run while no stream holds a message of
// their job. A person's requeue that was cut off makes one; so do an operator who
// deletes messages, and a store that lost its last writes. One worker at a time does
// it, elected by a key that expires.
func (k *Consumer) janitor() {
	every := janitorEvery * k.conn.cfg.Timing.AckWait
	var s *sweep
	for wait(k.ctx, every) {
		s = k.tend(s, every)
	}
}

// tend looks once, if this worker is the janitor. It returns a sweep to go on with, none if somebody else is.
func (k *Consumer) tend(s *sweep, every time.Duration) *sweep {
	// Up to the next election pass the look and the wait after it, a period each at most; one is to spare.
	mine, err := k.elected(k.ctx, 3*every)
	if err != nil {
		return s // who is elected is unknown; a sweep that rests is not wrong
	}
	if !mine {
		return nil
	}
	if s == nil {
		s = newSweep(k.conn)
	}
	ctx, cancel := context.WithTimeout(k.ctx, every) // what was not done then is done at the next look
	defer cancel()
	if err := s.look(ctx); err != nil && k.ctx.Err() == nil {
		k.conn.cfg.OnError(fmt.Errorf("look for lost tokens: %w", err))
	}
	return s
}

// elected takes or keeps the janitor's key for a while. It reports false if somebody else holds it.
func (k *Consumer) elected(ctx context.Context, period time.Duration) (bool, error) {
	holder, seq, err := k.conn.getKey(ctx, k.conn.names.workers(), janitorKey)
	if err != nil || (holder != nil && string(holder) != k.boot) {
		return false, err
	}
	msg := nats.NewMsg(key(k.conn.names.workers(), janitorKey))
	msg.Data = []byte(k.boot)
	err = k.conn.publish(ctx, "become janitor", msg,
		jetstream.WithExpectLastSequencePerSubject(seq), jetstream.WithMsgTTL(max(time.Second, period.Truncate(time.Second))))
	return err == nil, err
}

// repair brings back the token of a job that has none, or gives the job up.
func (c *Conn) repair(ctx context.Context, id job.ID, v version) error {
	if v.rec.State == job.StateRunning {
		if w, _, err := c.worker(ctx, v.rec.Owner); err != nil || w.runs(id, v.rec.Fence) {
			return err // it will commit all the same
		}
	}
	letter, err := c.last(ctx, c.names.dead(), c.names.anyLetter(id))
	if err != nil {
		return err
	}
	if letter != nil {
		return c.revive(ctx, id, v.rec, letter.Data)
	}
	c.cfg.OnError(fmt.Errorf("job %s is %s, but lost its token: given up as errored, for its spec is lost with it", id, v.rec.State))
	return c.giveUp(ctx, id, v)
}

// giveUp decides a job whose spec nobody has any more. It settles no decision but its own: a worker that decided
// meanwhile has the spec in its token, and a dead letter to keep before the result.
func (c *Conn) giveUp(ctx context.Context, id job.ID, v version) error {
	var own *record
	at := time.Now().UTC() // tells a try of this call from another's decision
	v, err := c.change(ctx, id, v, func(rec *record) *record {
		own = nil
		if rec == nil || rec.State.Final() {
			return nil
		}
		next := *rec
		next.Fence++
		r := &job.Result{Outcome: job.Errored, Reason: job.ReasonInternal, FinishedAt: at, Message: "the queue lost this job's message; submit it again under a new id"}
		if conclude(id, &next, r, c.resultLimit()) != nil {
			return nil
		}
		own = &next
		return own
	}, func(rec *record) bool { return rec.State.Final() && rec.FinishedAt.Equal(at) })
	if err != nil || own == nil {
		return err
	}
	return c.settle(ctx, id, v.rec, nil, nil)
}
