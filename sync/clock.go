package wsync

import (
	"context"
	"math/rand/v2"
	"time"
)

// sleep waits, or returns why ctx ended.
func sleep(ctx context.Context, d time.Duration) error {
	if d <= 0 {
		return context.Cause(ctx)
	}
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-t.C:
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

// jitter spreads a pause over its second half, so that two writers don't meet again.
func jitter(d time.Duration) time.Duration {
	return d/2 + rand.N(d/2+1) //nolint:gosec // nothing is guessed from it
}
