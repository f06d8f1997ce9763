package follow

import (
	"reflect"
	"slices"
	"testing"

	"pgregory.net/rapid"

	"slipway/job"
)

// TestPosition_Property: whatever gets lost and however often a reader starts again, each event that is kept is yielded
// once and in order, and the gaps count those that are missing before it.
func TestPosition_Property(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		var kept []job.Event
		missing := map[int]uint64{}
		for attempt := range rapid.IntRange(1, 3).Draw(t, "attempts") {
			lost := uint64(0)
			for seq := range rapid.Uint64Range(0, 6).Draw(t, "events") {
				if rapid.Bool().Draw(t, "lost") {
					lost++
					continue
				}
				kept = append(kept, eventOf(1, attempt+1, seq+1, job.EventOutput))
				missing[attempt+1] += lost
				lost = 0
			}
		}
		var at position
		var got []job.Event
		gaps := map[int]uint64{}
		for range rapid.IntRange(0, 3).Draw(t, "broken connections") {
			n := rapid.IntRange(0, len(kept)).Draw(t, "until")
			got = append(got, read(&at, kept[:n], gaps)...)
		}
		got = append(got, read(&at, kept, gaps)...)
		if !slices.EqualFunc(got, kept, func(a, b job.Event) bool { return a.Attempt == b.Attempt && a.Seq == b.Seq }) {
			t.Fatalf("got %v, want %v", got, kept)
		}
		for attempt, want := range missing {
			if gaps[attempt] != want {
				t.Fatalf("attempt %d: the gaps count %d events, want %d", attempt, gaps[attempt], want)
			}
		}
	})
}

// read returns the events that at yields of those, and adds up the gaps.
func read(at *position, events []job.Event, gaps map[int]uint64) (out []job.Event) {
	for _, e := range events {
		for _, u := range at.next(e) {
			switch u := u.(type) {
			case Event:
				out = append(out, u.Event)
			case Gap:
				gaps[u.Attempt] += u.Missing
			}
		}
	}
	return out
}

// TestAfter: a reader who has the events up to one of them gets none twice, and learns only of what is missing since.
func TestAfter(t *testing.T) {
	t.Parallel()
	last := eventOf(1, 2, 5, job.EventOutput)
	for name, tc := range map[string]struct {
		last job.Event
		next job.Event
		want []Update
	}{
		"an event before": {last, eventOf(1, 2, 4, job.EventOutput), nil},
		"the same":        {last, last, nil},
		"an old attempt":  {last, eventOf(1, 1, 9, job.EventOutput), nil},
		"the next one":    {last, eventOf(1, 2, 6, job.EventOutput), []Update{Event{eventOf(1, 2, 6, job.EventOutput)}}},
		"a gap":           {last, eventOf(1, 2, 8, job.EventOutput), []Update{Gap{1, 2, 2}, Event{eventOf(1, 2, 8, job.EventOutput)}}},
		"the end again":   {eventOf(1, 2, 9, job.EventFinished), eventOf(1, 2, 1, job.EventFinished), nil},
		"the next run":    {eventOf(1, 2, 9, job.EventFinished), eventOf(2, 1, 1, job.EventClaimed), []Update{Event{eventOf(2, 1, 1, job.EventClaimed)}}},
		"the beginning":   {job.Event{}, eventOf(1, 1, 1, job.EventClaimed), []Update{Event{eventOf(1, 1, 1, job.EventClaimed)}}},
	} {
		at := after(tc.last)
		if got := at.next(tc.next); !reflect.DeepEqual(got, tc.want) {
			t.Errorf("%s: got %v, want %v", name, got, tc.want)
		}
	}
}
