package wsync

import (
	"context"
	"iter"
	"sync"
)

// ordered runs fn on items, at most n at a time, and yields the results in the order of
// items. Memory is bounded: a result that nobody has taken yet counts as running. It stops
// at the first error, and waits for what it started.
func ordered[T, U any](ctx context.Context, n int, items []T, fn func(context.Context, T) (U, error)) iter.Seq2[U, error] {
	type result struct {
		value U
		err   error
	}
	return func(yield func(U, error) bool) {
		ctx, cancel := context.WithCancel(ctx)
		var wg sync.WaitGroup
		defer wg.Wait()
		defer cancel()
		queue := make(chan chan result, n-1)
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
			var none U
			yield(none, context.Cause(ctx))
		}
	}
}

// group runs functions, at most n at a time. The first error cancels the rest.
type group struct {
	wg     sync.WaitGroup
	slots  chan struct{}
	ctx    context.Context
	cancel context.CancelCauseFunc
}

func newGroup(ctx context.Context, n int) *group {
	g := &group{slots: make(chan struct{}, n)}
	g.ctx, g.cancel = context.WithCancelCause(ctx)
	return g
}

// start waits for a slot and runs fn. It returns the error that ended the group.
func (g *group) start(fn func(context.Context) error) error {
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

// wait waits for all, and returns the first error.
func (g *group) wait() error {
	g.wg.Wait()
	err := context.Cause(g.ctx)
	g.cancel(context.Canceled)
	return err
}
