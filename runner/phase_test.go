package runner

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"slipway/runner/internal/verdict"
)

// TestPhase_Limit: a phase that takes longer than its limit says so, and one that ends with the attempt does not blame
// its limit, though both have passed when it returns.
func TestPhase_Limit(t *testing.T) {
	t.Parallel()
	broken := errors.New("broken")
	limit := &verdict.Timeout{What: "the phase", Limit: time.Minute}
	tests := []struct {
		name    string
		ends    time.Duration // when the attempt ends; 0: not
		takes   time.Duration // until do returns, whatever its context says
		err     error
		limited bool // whether the limit is blamed
	}{
		{"in time", 0, time.Second, nil, false},
		{"broken in time", 0, time.Second, broken, false},
		{"too long", 0, time.Hour, broken, true},
		{"too long, and it worked", 0, time.Hour, nil, false},
		{"attempt ended first", time.Second, time.Hour, broken, false},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				ctx, cancel := context.WithCancel(t.Context())
				defer cancel()
				if tt.ends > 0 {
					defer time.AfterFunc(tt.ends, cancel).Stop()
				}
				err := phase{limit: limit, do: func(context.Context) error { pass(tt.takes); return tt.err }}.run(ctx)
				if !errors.Is(err, tt.err) || errors.Is(err, limit) != tt.limited {
					t.Errorf("got %v, want %v, and the limit blamed: %v", err, tt.err, tt.limited)
				}
			})
		})
	}
}

// TestPhase_NotBegun: nothing is begun for an attempt that is over, and what ended it is the error.
func TestPhase_NotBegun(t *testing.T) {
	t.Parallel()
	over := errors.New("over")
	ctx, cancel := context.WithCancelCause(t.Context())
	cancel(over)
	err := phase{limit: &verdict.Timeout{Limit: time.Minute}, do: func(context.Context) error {
		t.Error("it was begun")
		return nil
	}}.run(ctx)
	if !errors.Is(err, over) {
		t.Errorf("got %v, want %v", err, over)
	}
}
