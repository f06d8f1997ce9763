package natsqueue

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"iter"
	"slices"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"slipway/job"
)

// DeadLetters yields the jobs that slipway gave up on, newest first. See job.Client.
func (c *Client) DeadLetters(ctx context.Context) iter.Seq2[job.DeadLetter, error] {
	return func(yield func(job.DeadLetter, error) bool) {
		subjects, err := c.conn.subjects(ctx, c.conn.names.dead(), string(c.conn.names)+".X.>")
		if err != nil {
			yield(job.DeadLetter{}, fmt.Errorf("list dead letters: %w", err))
			return
		}
		order := make([]string, 0, len(subjects))
		for s := range subjects {
			order = append(order, s)
		}
		slices.SortFunc(order, func(a, b string) int {
			_, idA, _, _ := c.conn.names.parseKept(a)
			_, idB, _, _ := c.conn.names.parseKept(b)
			return cmp.Compare(idB, idA)
		})
		for _, s := range order {
			d, err := c.conn.letter(ctx, s)
			if errors.Is(err, job.ErrNotFound) {
				continue // dropped just now
			}
			if err != nil {
				err = fmt.Errorf("read a dead letter: %w", err)
			}
			if !yield(d, err) || err != nil {
				return
			}
		}
	}
}

// letter reads one dead letter and the result beside it.
func (c *Conn) letter(ctx context.Context, subject string) (job.DeadLetter, error) {
	msg, err := c.last(ctx, c.names.dead(), subject)
	if err != nil {
		return job.DeadLetter{}, err
	}
	if msg == nil {
		return job.DeadLetter{}, job.ErrNotFound
	}
	queue, id, gen, ok := c.names.parseKept(msg.Subject)
	if !ok {
		return job.DeadLetter{}, fmt.Errorf("unexpected subject %.200q", msg.Subject)
	}
	d := job.DeadLetter{ID: id, Queue: queue, Generation: gen, At: msg.Time, Spec: msg.Data}
	if err := json.Unmarshal([]byte(msg.Header.Get(headerStatus)), &d.Status); err != nil {
		return d, fmt.Errorf("status of job %s: %w", id, err)
	}
	var labels brief
	if json.Unmarshal(msg.Data, &labels) == nil {
		d.Status.Labels = labels.Labels
	}
	result, err := c.last(ctx, c.names.results(), c.names.result(queue, id, gen))
	if err != nil || result == nil {
		return d, err // the result may have expired
	}
	d.Result, err = decodeResult(result.Data)
	return d, err
}

// RequeueDead puts a dead job back as its next generation: the record, then the
// token, then the letter. Each step may be repeated. See job.Client.
func (c *Client) RequeueDead(ctx context.Context, id job.ID) error {
	if err := c.conn.requeueDead(ctx, id); err != nil {
		return fmt.Errorf("requeue dead job %s: %w", id, err)
	}
	return nil
}

func (c *Conn) requeueDead(ctx context.Context, id job.ID) error {
	msg, err := c.deadLetter(ctx, id)
	if err != nil {
		return err
	}
	queue, _, gen, _ := c.names.parseKept(msg.Subject)
	v, err := c.load(ctx, id)
	if err != nil {
		return err
	}
	v, err = c.change(ctx, id, v, func(rec *record) *record {
		if rec == nil || (rec.State.Final() && rec.Generation == gen) {
			return revived(rec, queue, gen, msg)
		}
		return nil // an earlier call came as far as this
	}, func(rec *record) bool { return rec.Generation == gen+1 })
	if err != nil {
		return err
	}
	if v.rec.State == job.StateQueued && v.rec.Generation == gen+1 {
		if err := c.revive(ctx, id, v.rec, msg.Data); err != nil {
			return err
		}
	}
	return c.deleteMsg(ctx, c.names.dead(), msg.Sequence)
}

// revived is the record of the next generation: fresh budgets, but a fence that
// goes on, so that nobody of the last one can speak for this one.
func revived(rec *record, queue string, gen int, msg *jetstream.RawStreamMsg) *record {
	next := &record{
		State: job.StateQueued, Generation: gen + 1, Queue: queue, Class: job.PriorityNormal,
		SubmittedAt: submitted(msg.Header, msg.Time),
	}
	if rec != nil {
		next.Fence, next.Class, next.Name, next.Labels = rec.Fence, rec.Class, rec.Name, rec.Labels
	} else {
		var s job.Status
		_ = json.Unmarshal([]byte(msg.Header.Get(headerStatus)), &s)
		next.Fence, next.Name = s.Fence, s.Name
	}
	next.Class = classOf(next.Class)
	return next
}

// revive writes the token again.
func (c *Conn) revive(ctx context.Context, id job.ID, rec *record, spec []byte) error {
	return c.putToken(ctx, token{id: id, queue: rec.Queue, class: rec.Class, spec: spec, submittedAt: rec.SubmittedAt})
}

// putToken makes t, also beside one that is still there: that may be the last attempt's or generation's, on
// its way out. One more does no harm, and none would.
func (c *Conn) putToken(ctx context.Context, t token) error {
	msg := c.message(t)
	err := c.create(ctx, "put the job into its queue", msg)
	if errors.Is(err, job.ErrExists) {
		err = c.publish(ctx, "put the job into its queue", msg, jetstream.WithMsgID(msgID(msg, time.Now())))
	}
	if isFull(err) {
		return fmt.Errorf("queue %s: %w: %w", t.queue, job.ErrFull, err)
	}
	return err
}

// msgID keeps the repeats of one call from making a token each.
func msgID(msg *nats.Msg, at time.Time) string {
	return fmt.Sprintf("%s %d", msg.Subject, at.UnixNano())
}

// DropDead forgets a dead letter. It needs no right to publish, but in the moment between a letter and its result: then
// it publishes that itself. See job.Client.
func (c *Client) DropDead(ctx context.Context, id job.ID) error {
	if err := c.conn.dropDead(ctx, id); err != nil {
		return fmt.Errorf("drop dead job %s: %w", id, err)
	}
	return nil
}

func (c *Conn) dropDead(ctx context.Context, id job.ID) error {
	msg, err := c.deadLetter(ctx, id)
	if err != nil {
		return err
	}
	v, err := c.load(ctx, id)
	if err != nil {
		return err
	}
	if _, _, gen, _ := c.names.parseKept(msg.Subject); v.rec != nil && v.rec.State.Final() && v.rec.Generation == gen {
		// By the result, who meets the token later knows that there was a letter.
		result, err := c.last(ctx, c.names.results(), c.names.result(v.rec.Queue, id, gen))
		if err == nil && result == nil {
			err = c.publishResult(ctx, id, v.rec)
		}
		if err != nil {
			return err
		}
	}
	return c.deleteMsg(ctx, c.names.dead(), msg.Sequence)
}

// deadLetter reads the message of a dead letter.
func (c *Conn) deadLetter(ctx context.Context, id job.ID) (*jetstream.RawStreamMsg, error) {
	if err := checkID(id); err != nil {
		return nil, err
	}
	msg, err := c.last(ctx, c.names.dead(), c.names.anyLetter(id))
	if err == nil && msg == nil {
		err = fmt.Errorf("%w among the dead letters", job.ErrNotFound)
	}
	return msg, err
}
