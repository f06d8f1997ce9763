package natsqueue

import (
	"context"
	"encoding/json"
	"fmt"

	"slipway/job"
)

// Cancel asks for the end of a job. A job that nobody works on is decided here and now. If it runs, its record is marked,
// so that a commit that does not know of the cancel fails, and its worker is told. See job.Client.
func (c *Client) Cancel(ctx context.Context, id job.ID, mode job.CancelMode) (job.State, error) {
	if mode != job.Cancel && mode != job.Abort {
		return "", fmt.Errorf("cancel job %s: unknown mode %d", id, mode)
	}
	if err := checkID(id); err != nil {
		return "", fmt.Errorf("cancel: %w", err)
	}
	state, err := c.cancel(ctx, id, mode)
	if err != nil {
		return "", fmt.Errorf("cancel job %s: %w", id, c.q.rooms.explain(ctx, err))
	}
	return state, nil
}

func (c *Client) cancel(ctx context.Context, id job.ID, mode job.CancelMode) (job.State, error) {
	v, err := c.q.records.load(ctx, id)
	if err != nil {
		return "", err
	}
	var origin *record // stands in for a record that is not there
	if v.rec == nil {
		if origin, err = c.recordFromTraces(ctx, id); err != nil {
			return "", err
		}
		if origin.State.Final() {
			return origin.State, nil
		}
	}
	var met job.State
	var fault error
	v, err = c.q.records.change(ctx, id, v, func(rec *record) *record {
		if rec == nil {
			rec = origin
		}
		if rec == nil {
			fault = job.ErrNotFound // the record was there, and expired since
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
	return met, c.followUp(ctx, id, v, met, mode)
}

// canceled returns the record that a cancel makes of rec, nil if the cancel changes nothing.
func (c *Client) canceled(id job.ID, rec *record, mode job.CancelMode) (*record, error) {
	if rec.State.Final() || (rec.State == job.StateRunning && rec.Cancel >= mode) {
		return nil, nil
	}
	next := *rec
	next.Cancel = max(rec.Cancel, mode)
	if rec.State == job.StateRunning {
		return &next, nil
	}
	r := &job.Result{StartedAt: rec.StartedAt, Outcome: job.Canceled, Reason: job.ReasonCanceledByUser, Message: "canceled by a user while it waited"}
	return &next, c.q.decisions.conclude(id, &next, r)
}

// followUp tells the worker, or settles, after the record was changed.
func (c *Client) followUp(ctx context.Context, id job.ID, v version, met job.State, mode job.CancelMode) error {
	switch {
	case met == job.StateRunning:
		if v.rec.State != job.StateRunning {
			return nil // it ended by itself meanwhile
		}
		data, err := json.Marshal(control{ID: id, Mode: mode})
		if err == nil {
			err = c.q.js.Core().Publish(c.q.names.control(v.rec.Owner), data)
		}
		if err != nil {
			c.q.cfg.OnError(fmt.Errorf("tell worker %s of a cancel: %w", v.rec.Owner, err)) // the worker reads it at its next heartbeat
		}
		return nil
	case met.Final():
		return nil
	}
	if err := c.q.decisions.settle(ctx, id, v, nil, nil); err != nil {
		return err
	}
	if err := c.q.tokens.remove(ctx, id); err != nil {
		c.q.cfg.OnError(err) // the worker that gets the token drops it
	}
	return nil
}

// recordFromTraces makes up the record of a job that has none: from its token, or from its
// result if the record has expired. It returns ErrNotFound without either.
func (c *Client) recordFromTraces(ctx context.Context, id job.ID) (*record, error) {
	t, _, err := c.q.tokens.find(ctx, id)
	if err != nil {
		return nil, err
	}
	if t.id != "" {
		return t.record(), nil
	}
	r, err := c.q.decisions.published(ctx, id)
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
