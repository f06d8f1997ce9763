// Package parallel runs functions side by side, a bounded number at a time, and always waits for what it started.
//
//   - Ordered: work on a list whose results are taken in the list's order.
//   - Group: work that comes one by one and has no results.
package parallel

import (
	"context"
	"iter"
	"sync"
)

// Ordered runs fn on items, at most n at a time, and yields the results in the order of items. A result that was
// not taken yet counts as running, which bounds the memory. Ordered stops at the first error, or when the loop over
// it ends; either way it cancels the context of what runs, and waits.
func Ordered[T, U any](ctx context.Context, n int, items []T, fn func(context.Context, T) (U, error)) iter.Seq2[U, error] {
	type result struct {
		value U
		err   error
	}
	return func(yield func(U, error) bool) {
		ctx, cancel := context.WithCancel(ctx)
		var wg sync.WaitGroup
		defer wg.Wait()
		defer cancel()
		queue := make(chan chan result, n-1) // and one is in the hands of the loop below
		wg.Go(func() {
			defer close(queue)
			for _, item := range items {
				slot := make(chan result, 1)
				select {
				case queue <- slot:
				case <-ctx.Done():
					return
				}
				wg.Go(func() {
					v, err := fn(ctx, item)
					slot <- result{v, err}
				})
			}
		})
		done := 0
		for slot := range queue {
			r := <-slot
			if !yield(r.value, r.err) || r.err != nil {
				return
			}
			done++
		}
		if done < len(items) { // the caller's context ended before the rest was begun
			var zero U
			yield(zero, context.Cause(ctx))
		}
	}
}

// Group runs functions, at most n at a time. The first error cancels the context of the others. One goroutine starts
// them and waits; after Wait the Group is used up.
type Group struct {
	wg     sync.WaitGroup
	slots  chan struct{}
	ctx    context.Context
	cancel context.CancelCauseFunc
}

// NewGroup returns a Group whose functions get a context below ctx. Call Wait in every case.
func NewGroup(ctx context.Context, n int) *Group {
	g := &Group{slots: make(chan struct{}, n)}
	g.ctx, g.cancel = context.WithCancelCause(ctx)
	return g
}

// Context ends with the first error, with Cancel, with Wait, and with the context that the Group was made with.
func (g *Group) Context() context.Context { return g.ctx }

// Start waits until fewer than n functions run, and runs fn. If the Group's context has ended it returns the cause instead.
func (g *Group) Start(fn func(context.Context) error) error {
	select {
	case g.slots <- struct{}{}:
	case <-g.ctx.Done():
		return context.Cause(g.ctx)
	}
	g.wg.Go(func() {
		defer func() { <-g.slots }()
		if err := fn(g.ctx); err != nil {
			g.cancel(err)
		}
	})
	return nil
}

// Cancel ends the Group's context with the cause err, which Wait returns if nothing failed before.
func (g *Group) Cancel(err error) { g.cancel(err) }

// Wait waits for all functions, and returns the first error.
func (g *Group) Wait() error {
	g.wg.Wait()
	err := context.Cause(g.ctx)
	g.cancel(context.Canceled)
	return err
}
