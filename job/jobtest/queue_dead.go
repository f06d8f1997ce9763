package jobtest

import (
	"cmp"
	"context"
	"fmt"
	"iter"
	"slices"
	"time"

	"slipway/job"
)

// DeadLetters yields the jobs that were given up, newest first.
func (q *Queue) DeadLetters(context.Context) iter.Seq2[job.DeadLetter, error] {
	q.mu.Lock()
	defer q.mu.Unlock()
	var all []job.DeadLetter
	for _, e := range q.jobs {
		if e.letter != nil {
			all = append(all, *e.letter)
		}
	}
	slices.SortFunc(all, func(a, b job.DeadLetter) int { return cmp.Compare(b.ID, a.ID) })
	return func(yield func(job.DeadLetter, error) bool) {
		for _, d := range all {
			if !yield(d, nil) {
				return
			}
		}
	}
}

// RequeueDead puts a dead job back as its next generation.
func (q *Queue) RequeueDead(_ context.Context, id job.ID) error {
	q.mu.Lock()
	defer q.mu.Unlock()
	e := q.jobs[id]
	if e == nil || e.letter == nil {
		return fmt.Errorf("requeue dead job %s: %w", id, job.ErrNotFound)
	}
	old := e.status
	e.status = job.Status{
		ID: id, Name: old.Name, Queue: old.Queue, Labels: old.Labels, State: job.StateQueued,
		Generation: old.Generation + 1, Fence: old.Fence, SubmittedAt: old.SubmittedAt,
	}
	q.order++
	e.letter, e.result, e.results, e.cancel, e.token, e.order = nil, nil, 0, 0, true, q.order
	e.visible, e.notBefore = time.Time{}, time.Time{}
	q.announce()
	return nil
}

// DropDead forgets a dead letter.
func (q *Queue) DropDead(_ context.Context, id job.ID) error {
	q.mu.Lock()
	defer q.mu.Unlock()
	e := q.jobs[id]
	if e == nil || e.letter == nil {
		return fmt.Errorf("drop dead job %s: %w", id, job.ErrNotFound)
	}
	e.letter = nil
	return nil
}
