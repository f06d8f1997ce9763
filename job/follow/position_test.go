package follow

import (
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
