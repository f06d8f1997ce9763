package docker

import (
	"errors"
	"testing"

	"slipway/container"
)

// A job is blamed for the loss of its box only where nothing else can have ended it.
func TestCauseOfLoss(t *testing.T) {
	whole := testimony{whole: true, ended: true}
	with := func(change func(*testimony)) testimony { t := whole; change(&t); return t }
	for _, tt := range []struct {
		name      string
		heard     testimony
		rootSteps bool
		want      error
	}{
		{"memory", with(func(t *testimony) { t.oom, t.code = true, 137 }), false, container.ErrBoxOOM},
		{"memory, with root steps", with(func(t *testimony) { t.oom, t.code = true, 137 }), true, container.ErrBoxOOM},
		{"killed by somebody after a kill for memory", with(func(t *testimony) { t.oom, t.code, t.killed = true, 137, true }), false, nil},
		{"killed from the host", with(func(t *testimony) { t.code = 137 }), true, nil},
		{"memory, and then an end of its own", with(func(t *testimony) { t.oom, t.code = true, 70 }), true, nil},
		{"root step, TERM", whole, true, container.ErrBoxEnded},
		{"root step, crash", with(func(t *testimony) { t.code = 2 }), true, container.ErrBoxEnded},
		{"docker stop beside a root step", with(func(t *testimony) { t.killed = true }), true, nil},
		{"TERM without root steps", whole, false, nil},
		{"crash without root steps", with(func(t *testimony) { t.code = 2 }), false, nil},
		{"lifetime", with(func(t *testimony) { t.code = 71 }), true, nil},
		{"the stream broke", testimony{ended: true, oom: true, code: 137}, true, nil},
		{"no end was told", testimony{whole: true, oom: true, code: 137}, true, nil},
		{"nothing is known", testimony{}, true, nil},
	} {
		if got := tt.heard.cause(tt.rootSteps); !errors.Is(got, tt.want) || tt.want == nil && got != nil {
			t.Errorf("%s: got %v, want %v", tt.name, got, tt.want)
		}
	}
}
