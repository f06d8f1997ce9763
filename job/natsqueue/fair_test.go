package natsqueue

import (
	"fmt"
	"testing"

	"slipway/job"
)

// TestTurnsOfLanes: lanes share the turns by their weights, whatever other lanes are empty.
func TestTurnsOfLanes(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		name string
		full map[string]int // the queue and priority of lanes that have jobs, with their turns among the first turns
		set  map[string]int // weights of the queues
	}{
		{"priorities of one queue", map[string]int{"a high": 80, "a normal": 30, "a low": 10}, nil},
		{"normal and low", map[string]int{"a normal": 90, "a low": 30}, nil},
		{"two queues", map[string]int{"a normal": 60, "b normal": 60}, nil},
		{"two queues, crosswise", map[string]int{"a high": 60, "b high": 60}, nil},
		{"three queues of five", map[string]int{"a normal": 40, "c normal": 40, "e normal": 40}, nil},
		{"weights", map[string]int{"a normal": 90, "b normal": 30}, map[string]int{"a": 3}},
		{"weights beside an empty heavy one", map[string]int{"a normal": 90, "b normal": 30}, map[string]int{"a": 3, "c": 100}},
		{"one alone", map[string]int{"b low": 120}, nil},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			f, name := lanesOf([]string{"a", "b", "c", "d", "e"}, tt.set)
			turns := map[string]int{}
			for range 120 {
				turns[name[turn(t, f, func(l *lane) bool { return tt.full[name[l]] > 0 })]]++
			}
			for lane, want := range tt.full {
				// The first turns find out which lanes are empty.
				if got := turns[lane]; got < want-3 || got > want+3 {
					t.Errorf("turns of %s: got %d of 120, want %d", lane, got, want)
				}
			}
		})
	}
}

// TestTurnsAfterARest: a lane that was empty for long saved no turns up. What waits beside it goes on.
func TestTurnsAfterARest(t *testing.T) {
	t.Parallel()
	f, name := lanesOf([]string{"a", "b"}, nil)
	for range 1000 {
		turn(t, f, func(l *lane) bool { return name[l] == "a normal" })
	}
	turns := map[string]int{}
	for range 20 {
		turns[name[turn(t, f, func(l *lane) bool { return name[l] == "a normal" || name[l] == "b normal" })]]++
	}
	if a, b := turns["a normal"], turns["b normal"]; a < 9 || b < 9 {
		t.Errorf("turns once b has jobs: got %d for a and %d for b of 20, want about 10 each", a, b)
	}
}

func lanesOf(queues []string, set map[string]int) (*fetcher, map[*lane]string) {
	f, name := &fetcher{}, map[*lane]string{}
	for _, q := range queues {
		for _, p := range priorities {
			l := &lane{queue: q, weight: weightOf(set, q, p)}
			name[l] = fmt.Sprintf("%s %s", q, p)
			f.lanes = append(f.lanes, l)
		}
	}
	return f, name
}

// turn takes one message as fetcher.take does, from the first lane that has one.
func turn(t *testing.T, f *fetcher, has func(*lane) bool) *lane {
	t.Helper()
	order, err := f.order(t.Context())
	if err != nil || len(order) != len(f.lanes) {
		t.Fatalf("order: got %d lanes, %v, want all %d", len(order), err, len(f.lanes))
	}
	for i, l := range order {
		if has(l) {
			f.charge(order[:i], l)
			return l
		}
	}
	t.Fatal("no lane has a message")
	return nil
}

// TestWeights: a weight that a worker can't keep is refused when it joins.
func TestWeights(t *testing.T) {
	t.Parallel()
	for name, set := range map[string]map[string]int{"no such queue": {"x": 2}, "zero": {"a": 0}, "negative": {"a": -1}, "too much": {"a": 101}} {
		if err := CheckWeights([]string{"a", "b"}, set); err == nil {
			t.Errorf("%s: got nil, want an error", name)
		}
	}
	if err := CheckWeights([]string{"a", "b"}, map[string]int{"a": 100, "b": 1}); err != nil {
		t.Errorf("got %v, want nil", err)
	}
	if got := weightOf(nil, "a", job.PriorityHigh); got != 8 {
		t.Errorf("weight of high: got %d, want 8", got)
	}
}
