package natsqueue

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"slipway/job"
)

// Status tells where a job stands: by its record, or by its token as long as no
// worker claimed it. See job.Client.
func (c *Client) Status(ctx context.Context, id job.ID) (job.Status, error) {
	s, err := c.status(ctx, id)
	if err != nil {
		return job.Status{}, fmt.Errorf("status of job %s: %w", id, err)
	}
	return s, nil
}

func (c *Client) status(ctx context.Context, id job.ID) (job.Status, error) {
	if err := checkID(id); err != nil {
		return job.Status{}, err
	}
	for again := true; ; again = false {
		v, err := c.q.records.load(ctx, id)
		if err != nil {
			return job.Status{}, err
		}
		rec := v.rec
		if rec == nil {
			rec, err = c.recordFromTraces(ctx, id)
		}
		if err == nil {
			return rec.status(id), nil
		}
		// Between the two looks the job may have been claimed, and decided: then it has a record now.
		if !again || !errors.Is(err, job.ErrNotFound) {
			return job.Status{}, err
		}
	}
}

// checkID keeps strings that are no id out of subjects: they could hold wildcards.
func checkID(id job.ID) error {
	if parsed, err := job.ParseID(string(id)); err != nil || parsed != id {
		return fmt.Errorf("%w: %.40q is no job id", job.ErrNotFound, id)
	}
	return nil
}

// Served lists the queues that living workers serve, sorted. A worker counts as alive for a while after its death
// (Timing.DeadMan).
func (c *Client) Served(ctx context.Context) ([]string, error) {
	workers, err := c.q.workers.list(ctx)
	if err != nil {
		return nil, fmt.Errorf("list the queues that are served: %w", err)
	}
	var queues []string
	for _, w := range workers {
		queues = append(queues, w.Queues...)
	}
	slices.Sort(queues)
	return slices.Compact(queues), nil
}
