package backoff

import (
	"testing"
	"time"
)

func TestDelay(t *testing.T) {
	t.Parallel()
	for earlier, want := range []time.Duration{time.Minute, 2 * time.Minute, 4 * time.Minute, maxDelay, maxDelay} {
		if got := Delay(time.Minute, earlier); got != want {
			t.Errorf("after %d tries: got %s, want %s", earlier, got, want)
		}
	}
	if got := Delay(time.Second, 1<<30); got != maxDelay {
		t.Errorf("after many tries: got %s, want %s", got, maxDelay)
	}
	if got := Delay(-time.Second, 3); got != 0 {
		t.Errorf("of a negative delay: got %s, want 0", got)
	}
}

func TestJittered(t *testing.T) {
	t.Parallel()
	for _, jitter := range []float64{0, 0.5, 0.999} {
		if got := Jittered(time.Minute, jitter); got < 30*time.Second || got >= time.Minute {
			t.Errorf("jitter %v: got %s, want from 30s to 1m", jitter, got)
		}
	}
}
