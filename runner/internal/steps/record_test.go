package steps

import (
	"strings"
	"testing"

	"slipway/job"
)

func fill(r *record, n, bytes int) {
	for i := range n {
		r.add(job.StepResult{Index: i, Output: job.Output{Head: strings.Repeat("x", bytes)}}, "")
	}
}

func TestRecord(t *testing.T) {
	t.Parallel()
	tests := []struct {
		name       string
		room       int
		n, bytes   int
		kept, last int
	}{
		{"nothing", 4 << 10, 0, 0, 0, -1},
		{"all fit", 4 << 10, 10, 100, 10, 9},
		{"a script's are all kept", 0, 500, 4 << 10, 500, 499},
		{"too many", 4 << 10, 1000, 700, 10, 999},
		{"each too large", 1 << 10, 10, 8 << 10, 2, 9},
		{"one too large", 1 << 10, 1, 8 << 10, 1, 0},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			r := record{budget: tt.room}
			fill(&r, tt.n, tt.bytes)
			all := r.all()
			if len(all) != tt.kept || len(all)+r.elided != tt.n {
				t.Errorf("got %d results and %d elided, want %d of %d", len(all), r.elided, tt.kept, tt.n)
			}
			if len(all) > 0 && (all[0].Index != 0 || all[len(all)-1].Index != tt.last) {
				t.Errorf("got results from %d to %d, want from 0 to %d", all[0].Index, all[len(all)-1].Index, tt.last)
			}
		})
	}
}

// TestRecord_Order: once a result did not fit, no later one goes before it, however small.
func TestRecord_Order(t *testing.T) {
	t.Parallel()
	r := record{budget: 4 << 10}
	for i, size := range []int{1 << 10, 8 << 10, 1, 1, 1} {
		r.add(job.StepResult{Index: i, Output: job.Output{Head: strings.Repeat("x", size)}}, "")
	}
	last := -1
	for _, s := range r.all() {
		if s.Index <= last {
			t.Errorf("result %d comes after %d", s.Index, last)
		}
		last = s.Index
	}
}

// TestRecord_LogKeys: a key that comes into a result later has its room.
func TestRecord_LogKeys(t *testing.T) {
	t.Parallel()
	r := record{budget: 4 << 10}
	for i := range 100 {
		r.add(job.StepResult{Index: i}, strings.Repeat("k", 1<<10))
	}
	if got := len(r.all()); got > 8 {
		t.Errorf("got %d results with keys of 1 KiB in twice 4 KiB", got)
	}
}

// TestRecord_Memory: a loop without an end takes the memory of what it keeps.
func TestRecord_Memory(t *testing.T) {
	t.Parallel()
	r := record{budget: 8 << 10}
	fill(&r, 10_000, 100)
	if len(r.tail) > 100 || cap(r.tail) > 400 {
		t.Errorf("the tail holds %d results in room for %d", len(r.tail), cap(r.tail))
	}
}

// TestExcerptSize: the excerpts of all steps of a job fit into one message, and a few steps get what was asked for.
func TestExcerptSize(t *testing.T) {
	t.Parallel()
	for n, want := range map[int]int{0: 4096, 1: 4096, 32: 4096, job.MaxSteps: 655} {
		if got := excerptSize(4096, n); got != want {
			t.Errorf("%d steps: got %d, want %d", n, got, want)
		}
	}
}
