package docker

import (
	"context"
	"errors"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"
)

func TestFlightsShare(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var g singleFlight[string, int]
		var runs atomic.Int32
		var said sync.Map
		work := func(ctx context.Context, say func(string)) (int, error) {
			runs.Add(1)
			select {
			case <-time.After(time.Minute):
				say("half")
				return 7, nil
			case <-ctx.Done():
				return 0, ctx.Err()
			}
		}
		impatient, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		var wg sync.WaitGroup
		wg.Go(func() {
			if _, err := g.do(impatient, "k", nil, work); !errors.Is(err, context.DeadlineExceeded) {
				t.Errorf("impatient: got %v", err)
			}
		})
		synctest.Wait() // the impatient one is the first
		for i := range 5 {
			wg.Go(func() {
				got, err := g.do(t.Context(), "k", func(string) { said.Store(i, true) }, work)
				if got != 7 || err != nil {
					t.Errorf("got %d, %v, want 7: the work must survive its first caller", got, err)
				}
			})
		}
		wg.Wait()
		if got := runs.Load(); got != 1 {
			t.Errorf("ran %d times, want once", got)
		}
		for i := range 5 {
			if _, ok := said.Load(i); !ok {
				t.Errorf("caller %d was told nothing", i)
			}
		}
		alone, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		if _, err := g.do(alone, "k", nil, work); !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("alone: got %v", err)
		}
		g.wait() // nobody waits, so that the work was canceled
		if got := runs.Load(); got != 2 {
			t.Errorf("ran %d times, want twice", got)
		}
	})
}
