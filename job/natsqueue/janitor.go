package natsqueue

import (
	"context"
	"errors"
	"fmt"
	"strings"
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
	suspects := map[job.ID]uint64{}
	for wait(k.ctx, every) {
		if !k.elected(k.ctx, 2*every) {
			clear(suspects)
			continue
		}
		if err := k.conn.repair(k.ctx, suspects); err != nil && k.ctx.Err() == nil {
			k.conn.cfg.OnError(fmt.Errorf("look for lost tokens: %w", err))
		}
	}
}

// elected takes or keeps the janitor's key for a while.
func (k *Consumer) elected(ctx context.Context, period time.Duration) bool {
	holder, seq, err := k.conn.getKey(ctx, k.conn.names.workers(), janitorKey)
	if err != nil || (holder != nil && string(holder) != k.boot) {
		return false
	}
	msg := nats.NewMsg(key(k.conn.names.workers(), janitorKey))
	msg.Data = []byte(k.boot)
	err = k.conn.publish(ctx, "become janitor", msg,
		jetstream.WithExpectLastSequencePerSubject(seq), jetstream.WithMsgTTL(max(time.Second, period.Truncate(time.Second))))
	return err == nil
}

// repair deals with each record that had no token twice in a row, with nothing
// having happened to it in between. suspects holds the revisions of the first look.
func (c *Conn) repair(ctx context.Context, suspects map[job.ID]uint64) error {
	tokens := map[job.ID]bool{}
	for stream, filter := range map[string]string{c.names.jobs(): ".J.>", c.names.sched(): ".D.>"} {
		subjects, err := c.subjects(ctx, stream, string(c.names)+filter)
		if err != nil {
			return err
		}
		for s := range subjects {
			for _, part := range strings.Split(s, ".") {
				tokens[job.ID(part)] = true
			}
		}
	}
	records, err := c.subjects(ctx, bucket(c.names.records()), key(c.names.records(), ">"))
	if err != nil {
		return err
	}
	var errs []error
	for s := range records {
		id := job.ID(s[strings.LastIndexByte(s, '.')+1:])
		if tokens[id] || checkID(id) != nil {
			delete(suspects, id)
			continue
		}
		errs = append(errs, c.repairOne(ctx, id, suspects))
	}
	return errors.Join(errs...)
}

func (c *Conn) repairOne(ctx context.Context, id job.ID, suspects map[job.ID]uint64) error {
	v, err := c.load(ctx, id)
	if err != nil {
		return err
	}
	if v.rec == nil || v.rec.State.Final() {
		delete(suspects, id)
		return nil
	}
	if rev, known := suspects[id]; !known || rev != v.rev {
		suspects[id] = v.rev
		return nil
	}
	delete(suspects, id)
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

// giveUp decides a job whose spec nobody has any more.
func (c *Conn) giveUp(ctx context.Context, id job.ID, v version) error {
	v, err := c.change(ctx, id, v, func(rec *record) *record {
		if rec == nil || rec.State.Final() {
			return nil
		}
		next := *rec
		next.Fence++
		r := &job.Result{Outcome: job.Errored, Reason: job.ReasonInternal, Message: "the queue lost this job's message; submit it again under a new id"}
		if conclude(id, &next, r, c.resultLimit()) != nil {
			return nil
		}
		return &next
	}, func(rec *record) bool { return rec.State.Final() })
	if err != nil || v.rec == nil {
		return err
	}
	return c.settle(ctx, id, v.rec, nil, nil)
}
