package natsqueue

import (
	"context"
	"encoding/json"
	"fmt"

	"slipway/job"
)

// Cancel asks for the end of a job. A job that nobody works on is decided here and
// now; of one that runs, the record is marked, which makes a commit that does
// not know of it fail, and its worker is told. See job.Client.
func (c *Client) Cancel(ctx context.Context, id job.ID, mode job.CancelMode) (job.State, error) {
	if mode != job.Cancel && mode != job.Abort {
		return "", fmt.Errorf("cancel job %s: unknown mode %d", id, mode)
	}
	if err := checkID(id); err != nil {
		return "", fmt.Errorf("cancel: %w", err)
	}
	state, err := c.conn.cancel(ctx, id, mode)
	if err != nil {
		return "", fmt.Errorf("cancel job %s: %w", id, err)
	}
	return state, nil
}

func (c *Conn) cancel(ctx context.Context, id job.ID, mode job.CancelMode) (job.State, error) {
	v, err := c.load(ctx, id)
	if err != nil {
		return "", err
	}
	var origin *record // what stood in for a record where there is none
	if v.rec == nil {
		if origin, err = c.imply(ctx, id); err != nil {
			return "", err
		}
		if origin.State.Final() {
			return origin.State, nil
		}
	}
	var met job.State
	var fault error
	v, err = c.change(ctx, id, v, func(rec *record) *record {
		if rec == nil {
			rec = origin
		}
		if rec == nil {
			fault = job.ErrNotFound // a record was there, and expired since
			return nil
		}
		met = rec.status(id).State
		var next *record
		next, fault = c.canceled(id, rec, mode)
		return next
	}, func(rec *record) bool { return rec.Cancel >= mode })
	if err == nil {
		err = fault
	}
	if err != nil {
		return "", err
	}
	return met, c.followUp(ctx, id, v.rec, met, mode)
}

// canceled is what a cancel makes of rec, nil if it changes nothing.
func (c *Conn) canceled(id job.ID, rec *record, mode job.CancelMode) (*record, error) {
	if rec.State.Final() || (rec.State == job.StateRunning && rec.Cancel >= mode) {
		return nil, nil
	}
	next := *rec
	next.Cancel = max(rec.Cancel, mode)
	if rec.State == job.StateRunning {
		return &next, nil
	}
	r := &job.Result{StartedAt: rec.StartedAt, Outcome: job.Canceled, Reason: job.ReasonCanceledByUser, Message: "canceled by a user while it waited"}
	return &next, conclude(id, &next, r, c.resultLimit())
}

// followUp does what a cancel owes after the record was changed.
func (c *Conn) followUp(ctx context.Context, id job.ID, rec *record, met job.State, mode job.CancelMode) error {
	switch {
	case met == job.StateRunning:
		if rec.State != job.StateRunning {
			return nil // it ended by itself meanwhile
		}
		data, err := json.Marshal(control{ID: id, Mode: mode})
		if err == nil {
			err = c.nc.Publish(c.names.control(rec.Owner), data)
		}
		if err != nil {
			c.cfg.OnError(fmt.Errorf("tell worker %s of a cancel: %w", rec.Owner, err)) // its next heartbeat reads it
		}
		return nil
	case met.Final():
		return nil
	}
	if err := c.settle(ctx, id, rec, nil, nil); err != nil {
		return err
	}
	if err := c.removeTokens(ctx, id); err != nil {
		c.cfg.OnError(err) // the worker that meets it drops it
	}
	return nil
}

// imply makes up the record of a job that has none: from its token, or from its
// result if the record has expired. ErrNotFound if there is neither.
func (c *Conn) imply(ctx context.Context, id job.ID) (*record, error) {
	t, _, err := c.find(ctx, id)
	if err != nil {
		return nil, err
	}
	if t.id != "" {
		return t.record(), nil
	}
	r, err := c.published(ctx, id)
	if err != nil {
		return nil, err
	}
	if r == nil {
		return nil, fmt.Errorf("%w: %s", job.ErrNotFound, id)
	}
	return &record{
		State: job.FinalState(r.Outcome), Generation: r.Generation, Fence: r.Fence, Owner: r.Worker, Attempt: r.Attempt,
		Queue: r.Queue, Name: r.Name, Labels: r.Labels, SubmittedAt: r.SubmittedAt, StartedAt: r.StartedAt,
		FinishedAt: r.FinishedAt, Reason: r.Reason,
	}, nil
}

// published reads the latest result of a job, nil if there is none. The last
// message is that of the latest generation.
func (c *Conn) published(ctx context.Context, id job.ID) (*job.Result, error) {
	msg, err := c.last(ctx, c.names.results(), c.names.anyResult(id))
	if err != nil || msg == nil {
		return nil, err
	}
	return decodeResult(msg.Data)
}

func decodeResult(data []byte) (*job.Result, error) {
	r := new(job.Result)
	if err := json.Unmarshal(data, r); err != nil {
		return nil, fmt.Errorf("read a result: %w", err)
	}
	return r, nil
}
