package natsqueue

import (
	"testing"

	"slipway/job"
)

// A replica that is behind must never make a holder believe that its lease is lost.
func TestOlderThan(t *testing.T) {
	t.Parallel()
	running, done := &record{State: job.StateRunning}, &record{State: job.StateDone}
	tests := []struct {
		name        string
		read, known version
		want        bool
	}{
		{"older", version{running, 3}, version{running, 4}, true},
		{"the same", version{running, 4}, version{running, 4}, false},
		{"newer", version{done, 5}, version{running, 4}, false},
		{"not there yet", version{}, version{running, 4}, true},
		{"removed by a person", version{nil, 5}, version{running, 4}, false},
		{"expired", version{}, version{done, 4}, false},
		{"nothing known", version{}, version{}, false},
		{"first sight", version{running, 4}, version{}, false},
	}
	for _, tt := range tests {
		if got := tt.read.olderThan(tt.known); got != tt.want {
			t.Errorf("%s: got %t, want %t", tt.name, got, tt.want)
		}
	}
}
