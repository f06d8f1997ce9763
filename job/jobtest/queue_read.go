package jobtest

import (
	"cmp"
	"context"
	"fmt"
	"iter"
	"slices"

	"slipway/job"
)

// Status tells where a job stands.
func (q *Queue) Status(_ context.Context, id job.ID) (job.Status, error) {
	q.mu.Lock()
	defer q.mu.Unlock()
	e := q.jobs[id]
	if e == nil {
		return job.Status{}, fmt.Errorf("status of job %s: %w", id, job.ErrNotFound)
	}
	return e.current(), nil
}

// List yields the jobs that match, newest first.
func (q *Queue) List(_ context.Context, query job.ListQuery) iter.Seq2[job.Status, error] {
	q.mu.Lock()
	defer q.mu.Unlock()
	var all []job.Status
	for _, e := range q.jobs {
		if s := e.current(); query.Matches(s) {
			all = append(all, s)
		}
	}
	slices.SortFunc(all, func(a, b job.Status) int { return cmp.Compare(b.ID, a.ID) })
	limit := 100
	if query.Limit > 0 {
		limit = query.Limit
	}
	all = all[:min(len(all), limit)]
	return func(yield func(job.Status, error) bool) {
		for _, s := range all {
			if !yield(s, nil) {
				return
			}
		}
	}
}

// Result waits for the result of the latest generation.
func (q *Queue) Result(ctx context.Context, id job.ID) (*job.Result, error) {
	for {
		q.mu.Lock()
		e, changed := q.jobs[id], q.changed
		if e == nil {
			q.mu.Unlock()
			return nil, fmt.Errorf("result of job %s: %w", id, job.ErrNotFound)
		}
		if e.status.State.Final() {
			r := *e.result
			q.mu.Unlock()
			return &r, nil
		}
		q.mu.Unlock()
		select {
		case <-changed:
		case <-ctx.Done():
			return nil, fmt.Errorf("result of job %s: %w", id, context.Cause(ctx))
		}
	}
}

// Published returns how many results the present generation of a job has: it must
// never be more than one.
func (q *Queue) Published(id job.ID) int {
	q.mu.Lock()
	defer q.mu.Unlock()
	if e := q.jobs[id]; e != nil {
		return e.results
	}
	return 0
}

// Evict forgets the oldest n events of a job, all of them if it has fewer, as a queue does that keeps events for a limited time.
func (q *Queue) Evict(id job.ID, n int) {
	q.mu.Lock()
	defer q.mu.Unlock()
	if e := q.jobs[id]; e != nil {
		n = min(n, len(e.events))
		e.events, e.evicted = e.events[n:], e.evicted+n
	}
}

// since returns the events from number from on, and the number of the next one. If the last one of a decided job was
// evicted, it is made anew from the result. The caller holds mu.
func (e *entry) since(from int) (fresh []job.Event, next int) {
	next = e.evicted + len(e.events)
	fresh = slices.Clone(e.events[min(max(from-e.evicted, 0), len(e.events)):])
	if r := e.result; e.status.State.Final() && len(e.events) == 0 && from < next {
		fresh = append(fresh, job.Event{
			JobID: r.JobID, Generation: r.Generation, Attempt: r.Attempt, Fence: r.Fence, Seq: 1, Time: r.FinishedAt,
			Kind: job.EventFinished, Outcome: r.Outcome, Reason: r.Reason, Text: r.Message,
		})
	}
	return fresh, next
}

// Follow yields the events of a job.
func (q *Queue) Follow(ctx context.Context, id job.ID, wait bool) iter.Seq2[job.Event, error] {
	return func(yield func(job.Event, error) bool) {
		next := 0
		for {
			q.mu.Lock()
			e, changed := q.jobs[id], q.changed
			if e == nil {
				q.mu.Unlock()
				yield(job.Event{}, fmt.Errorf("follow job %s: %w", id, job.ErrNotFound))
				return
			}
			fresh, end := e.since(next)
			final := e.status.State.Final()
			q.mu.Unlock()
			for _, ev := range fresh {
				if !yield(ev, nil) {
					return
				}
			}
			if next = end; final || !wait {
				return
			}
			select {
			case <-changed:
			case <-ctx.Done():
				yield(job.Event{}, fmt.Errorf("follow job %s: %w", id, context.Cause(ctx)))
				return
			}
		}
	}
}
