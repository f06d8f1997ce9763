package natsqueue

import (
	"strings"
	"testing"
	"time"

	"github.com/nats-io/nats.go/jetstream"

	"slipway/job"
)

// A job comes due at its time, to the nanosecond: rounded to a second, as the library's own option does it, it would begin
// early.
func TestScheduleIsExact(t *testing.T) {
	t.Parallel()
	for _, at := range []time.Time{
		time.Date(2030, 1, 2, 3, 4, 5, 999_999_999, time.UTC),
		time.Date(2030, 1, 2, 3, 4, 5, 1, time.FixedZone("", 5*3600+1800)),
		time.Date(2030, 1, 2, 3, 4, 5, 0, time.UTC),
	} {
		msg := tokens{names: "p"}.schedule(token{id: "X", queue: "q", priority: job.PriorityLow}, 2, 3, at)
		text, ok := strings.CutPrefix(msg.Header.Get(jetstream.ScheduleHeader), "@at ")
		got, err := time.Parse(time.RFC3339, text) // as the server reads it
		if !ok || err != nil || !got.Equal(at) || !strings.HasSuffix(text, "Z") {
			t.Errorf("at %v: got %q, %v, want that time in UTC", at, text, err)
		}
		if to, want := msg.Header.Get(jetstream.ScheduleTargetHeader), names("p").due("q", job.PriorityLow, "X"); to != want || msg.Subject != names("p").wait("X", 2, 3) {
			t.Errorf("got %s on its way to %s, want %s", msg.Subject, to, want)
		}
	}
}
