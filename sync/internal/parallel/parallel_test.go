package parallel

import (
	"context"
	"errors"
	"slices"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"go.uber.org/goleak"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// gauge counts how many run at once.
type gauge struct{ now, most atomic.Int32 }

func (g *gauge) enter() {
	n := g.now.Add(1)
	for old := g.most.Load(); n > old && !g.most.CompareAndSwap(old, n); old = g.most.Load() {
	}
}

func (g *gauge) leave() { g.now.Add(-1) }

// TestOrderedOrder: results come in the order of the items, though the first takes longest.
func TestOrderedOrder(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		items := []int{5, 4, 3, 2, 1}
		var got []int
		for v, err := range Ordered(t.Context(), 3, items, func(_ context.Context, n int) (int, error) {
			<-time.After(time.Duration(n) * time.Second)
			return n, nil
		}) {
			if err != nil {
				t.Fatal(err)
			}
			got = append(got, v)
		}
		if !slices.Equal(got, items) {
			t.Errorf("got %v, want %v", got, items)
		}
	})
}

// TestOrderedBound: a result that nobody took counts as running; exactly n are under way.
func TestOrderedBound(t *testing.T) {
	for _, n := range []int{1, 2, 4} {
		synctest.Test(t, func(t *testing.T) {
			var begun atomic.Int32
			taken := int32(0)
			for _, err := range Ordered(t.Context(), n, make([]int, 20), func(context.Context, int) (int, error) {
				begun.Add(1)
				return 0, nil
			}) {
				if err != nil {
					t.Fatal(err)
				}
				synctest.Wait() // all that may begin has begun
				if got := begun.Load() - taken; got > int32(n)+1 || got < min(int32(n), 20-taken) {
					t.Errorf("n %d: got %d results begun and not given back, want %d beside the one in hand", n, got, n)
				}
				taken++
			}
		})
	}
}

// TestOrderedError: the first error ends the loop; what runs is canceled and waited for.
func TestOrderedError(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		errBad := errors.New("bad")
		var ended atomic.Int32
		var errs []error
		for _, err := range Ordered(t.Context(), 3, []int{0, 1, 2, 3, 4}, func(ctx context.Context, n int) (int, error) {
			defer ended.Add(1)
			if n == 0 {
				return 0, errBad
			}
			<-ctx.Done()
			return 0, ctx.Err()
		}) {
			errs = append(errs, err)
		}
		if len(errs) != 1 || !errors.Is(errs[0], errBad) {
			t.Errorf("got errors %v, want %v once", errs, errBad)
		}
		if got := ended.Load(); got < 2 || got > 4 {
			t.Errorf("got %d ended when the loop did, want those that had begun", got)
		}
	})
}

// TestOrderedCanceled: a caller's context that ends is told, and is not taken for the end of the list.
func TestOrderedCanceled(t *testing.T) {
	errStop := errors.New("stop")
	ctx, cancel := context.WithCancelCause(t.Context())
	cancel(errStop)
	var last error
	for _, err := range Ordered(ctx, 2, make([]int, 10), func(context.Context, int) (int, error) { return 0, nil }) {
		last = err
	}
	if !errors.Is(last, errStop) {
		t.Errorf("got last error %v, want %v", last, errStop)
	}
}

// TestGroupBound: at most n run, and Wait waits for all.
func TestGroupBound(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := NewGroup(t.Context(), 3)
		var running gauge
		var done atomic.Int32
		for range 10 {
			err := g.Start(func(context.Context) error {
				running.enter()
				defer running.leave()
				<-time.After(time.Second)
				done.Add(1)
				return nil
			})
			if err != nil {
				t.Fatal(err)
			}
		}
		if err := g.Wait(); err != nil || done.Load() != 10 || running.most.Load() != 3 {
			t.Errorf("got error %v, %d done, %d at once, want none, 10 and 3", err, done.Load(), running.most.Load())
		}
		if g.Context().Err() == nil {
			t.Error("the context lives after Wait")
		}
	})
}

// TestGroupError: the first error cancels the others, refuses new ones and is what Wait returns.
func TestGroupError(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := NewGroup(t.Context(), 2)
		errFirst := errors.New("first")
		start := func(fn func(context.Context) error) error { return g.Start(fn) }
		if err := start(func(ctx context.Context) error { <-ctx.Done(); return errors.New("second") }); err != nil {
			t.Fatal(err)
		}
		if err := start(func(context.Context) error { return errFirst }); err != nil {
			t.Fatal(err)
		}
		synctest.Wait()
		for range 2 { // both slots may be free by now
			g.slots <- struct{}{}
		}
		if err := start(func(context.Context) error { return nil }); !errors.Is(err, errFirst) {
			t.Errorf("start after an error: got %v, want %v", err, errFirst)
		}
		if err := g.Wait(); !errors.Is(err, errFirst) {
			t.Errorf("wait: got %v, want %v", err, errFirst)
		}
	})
}

// TestGroupCancel: the cause of Cancel is what Wait returns.
func TestGroupCancel(t *testing.T) {
	g := NewGroup(t.Context(), 1)
	errGiven := errors.New("given up")
	if err := g.Start(func(ctx context.Context) error { <-ctx.Done(); return ctx.Err() }); err != nil {
		t.Fatal(err)
	}
	g.Cancel(errGiven)
	if err := g.Wait(); !errors.Is(err, errGiven) {
		t.Errorf("got %v, want %v", err, errGiven)
	}
}
