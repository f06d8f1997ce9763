package natsqueue

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"iter"
	"slices"
	"strings"

	"slipway/job"
	"slipway/job/natsqueue/internal/jsconn"
)

// defaultLimit bounds a List whose query names no limit.
const defaultLimit = 100

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

// List yields the jobs that match, newest first: ids sort by time. See job.Client.
func (c *Client) List(ctx context.Context, q job.ListQuery) iter.Seq2[job.Status, error] {
	return func(yield func(job.Status, error) bool) {
		ids, err := c.ids(ctx)
		if err != nil {
			yield(job.Status{}, fmt.Errorf("list jobs: %w", err))
			return
		}
		left := cmp.Or(max(q.Limit, 0), defaultLimit)
		for _, id := range ids {
			s, err := c.status(ctx, id)
			if errors.Is(err, job.ErrNotFound) {
				continue // it expired just now
			}
			if err != nil {
				if !yield(job.Status{ID: id}, fmt.Errorf("list jobs: %w", err)) || !errors.Is(err, job.ErrUnreadable) {
					return
				}
				continue
			}
			if !matches(q, s) {
				continue
			}
			if !yield(s, nil) {
				return
			}
			if left--; left == 0 {
				return
			}
		}
	}
}

func matches(q job.ListQuery, s job.Status) bool {
	return (q.Queue == "" || q.Queue == s.Queue) && (len(q.States) == 0 || slices.Contains(q.States, s.State))
}

// ids lists every job that has a record or a token, newest first. The server
// answers with the subjects alone.
func (c *Client) ids(ctx context.Context) ([]job.ID, error) {
	known := map[job.ID]bool{}
	note := func(s string) {
		if id, err := job.ParseID(s); err == nil && string(id) == s {
			known[id] = true
		}
	}
	at, prefix := c.q.streams, string(c.q.names)
	for _, place := range []struct {
		stream jsconn.Stream
		filter string
		part   int // of the subject, from its end
	}{
		{at.records.Stream, at.records.Key(">"), 1},
		{at.jobs, prefix + ".J.>", 1},
		{at.sched, prefix + ".D.wait.>", 3},
		{at.sched, prefix + ".D.due.>", 1},
	} {
		subjects, err := place.stream.Subjects(ctx, place.filter)
		if err != nil {
			return nil, err
		}
		for s := range subjects {
			if parts := strings.Split(s, "."); len(parts) >= place.part {
				note(parts[len(parts)-place.part])
			}
		}
	}
	ids := make([]job.ID, 0, len(known))
	for id := range known {
		ids = append(ids, id)
	}
	slices.SortFunc(ids, func(a, b job.ID) int { return cmp.Compare(b, a) })
	return ids, nil
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
