package pause

import (
	"context"
	"testing"
	"testing/synctest"
	"time"
)

func TestFor(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		d, ctx, took time.Duration // ctx is its timeout
		runs         bool
	}{
		"the time":                 {time.Minute, time.Hour, time.Minute, true},
		"a context that ends":      {time.Hour, time.Second, time.Second, false},
		"no time":                  {0, time.Second, 0, true},
		"less than none":           {-time.Second, time.Second, 0, true},
		"no time, no context":      {0, -time.Second, 0, false},
		"a context that has ended": {time.Hour, -time.Second, 0, false},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				ctx, cancel := context.WithTimeout(t.Context(), tc.ctx)
				defer cancel()
				began := time.Now()
				if got := For(ctx, tc.d); got != tc.runs {
					t.Errorf("got %t for ctx still runs, want %t", got, tc.runs)
				}
				if got := time.Since(began); got != tc.took {
					t.Errorf("took %s, want %s", got, tc.took)
				}
			})
		})
	}
}
