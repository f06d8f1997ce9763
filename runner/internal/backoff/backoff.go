// Package backoff computes the delay between two tries: Delay doubles it, Jittered spreads it.
package backoff

import "time"

// maxDelay bounds what Delay returns.
const maxDelay = 5 * time.Minute

// Delay doubles first with each earlier try, up to five minutes.
func Delay(first time.Duration, earlier int) time.Duration {
	d := max(first, 0)
	for range earlier {
		if d >= maxDelay {
			break
		}
		d *= 2
	}
	return min(d, maxDelay)
}

// Jittered spreads d over its upper half, so that the jobs that one outage stopped don't all come back in the same
// second. jitter is from [0, 1).
func Jittered(d time.Duration, jitter float64) time.Duration {
	return d/2 + time.Duration(float64(d/2)*jitter)
}
