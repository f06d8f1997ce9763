package wsync

import (
	"math/rand/v2"
	"time"
)

// backoff is the pause before a try, 0 before the first.
func backoff(try int) time.Duration {
	if try == 0 {
		return 0
	}
	return jitter(50 * time.Millisecond << (try - 1))
}

// jitter spreads a pause over its second half, so that two writers don't meet again.
func jitter(d time.Duration) time.Duration {
	return d/2 + rand.N(d/2+1) //nolint:gosec // nothing is guessed from it
}
