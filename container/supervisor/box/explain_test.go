//go:build linux

package main

import (
	"syscall"
	"testing"

	"slipway/container/supervisor/internal/wire"
)

// What is known of the end of a step process decides whether its command is to blame.
func TestExplain(t *testing.T) {
	killed, exited := fate{true, 9}, fate{true, syscall.WaitStatus(2 << 8)}
	for _, tt := range []struct {
		name      string
		oom, pids bool
		fate      fate
		root      bool
		lost      bool
		unwatched bool
	}{
		{"killed beside a command that may not", false, false, killed, false, true, false},
		{"killed beside a command that may", false, false, killed, true, false, true},
		{"ended by the signal of a defect, which looks like an exit", false, false, exited, true, false, true},
		{"nothing is known, not even that it is dead", false, false, fate{}, true, true, false},
		{"a defect", false, false, exited, false, true, false},
		{"memory", true, false, killed, false, false, false},
		{"memory, of root", true, false, killed, true, false, false},
		{"no thread to be had", false, true, exited, false, false, false},
		{"killed at the limit of processes", false, true, killed, false, true, false},
	} {
		x := explain(wire.Exit{Lost: "x", OOM: tt.oom, Pids: tt.pids}, tt.fate, tt.root)
		if (x.Lost != "") != tt.lost || x.Unwatched != tt.unwatched || !tt.lost && x.Code != 137 {
			t.Errorf("%s: got %+v, want lost %t, Unwatched %t, and code 137 if not lost", tt.name, x, tt.lost, tt.unwatched)
		}
	}
}
