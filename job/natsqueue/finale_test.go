package natsqueue

import (
	"encoding/json"
	"testing"
	"testing/synctest"
	"time"

	"github.com/nats-io/nats.go/jetstream"

	"slipway/job"
	"slipway/job/natsqueue/internal/jsconn"
)

// eventsMessage is a message of EVENTS, as far as a follower looks at it.
type eventsMessage struct {
	jetstream.Msg
	seq  uint64
	data []byte
}

func (m eventsMessage) Data() []byte { return m.data }

func (m eventsMessage) Metadata() (*jetstream.MsgMetadata, error) {
	return &jetstream.MsgMetadata{Sequence: jetstream.SequencePair{Stream: m.seq}}, nil
}

// A follower waits for the last event of a fresh decision, no longer than that takes, and makes it itself in the end. For a
// job that no attempt ended, or that ended long ago, there is nothing to wait for.
func TestFinale(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		name     string
		finished int           // generation whose last event came before
		attempt  int           // that made the result
		age      time.Duration // of the decision
		event    time.Duration // when the last event comes; 0: never
		takes    time.Duration
		yields   int
	}{
		{"it came before", 2, 1, 0, 0, 0, 0},
		{"that of an earlier generation came before", 1, 1, 0, time.Second, time.Second, 1},
		{"it comes", 0, 1, 0, time.Second, time.Second, 1},
		{"it never comes", 0, 1, 0, 0, lateEvents, 1},
		{"it comes too late", 0, 1, 0, lateEvents + 1, lateEvents, 1},
		{"no attempt", 0, 0, 0, 0, 0, 1},
		{"decided long ago", 0, 1, time.Hour, 0, 0, 1},
		{"decided just lately", 0, 1, 5*lateEvents - 1, 0, lateEvents, 1},
		{"by a clock that is ahead", 0, 1, -time.Hour, 0, 0, 1},
	} {
		synctest.Test(t, func(t *testing.T) {
			var got []job.Event
			f := &follower{id: "X", finished: tt.finished, yield: func(e job.Event, _ error) bool { got = append(got, e); return true }}
			stream := &jsconn.Reader{Messages: make(chan jetstream.Msg, 1)}
			if tt.event > 0 {
				data, err := json.Marshal([]job.Event{{Kind: job.EventFinished, Generation: 2}})
				if err != nil {
					t.Fatal(err)
				}
				time.AfterFunc(tt.event, func() { stream.Messages <- eventsMessage{seq: 1, data: data} })
			}
			began := time.Now()
			err := f.finale(t.Context(), stream, &job.Result{Generation: 2, Attempt: tt.attempt, FinishedAt: began.Add(-tt.age)}, 2)
			if took := time.Since(began); err != nil || took != tt.takes || len(got) != tt.yields {
				t.Errorf("%s: got %v after %s and %d events, want %s and %d", tt.name, err, took, len(got), tt.takes, tt.yields)
			}
			for _, e := range got {
				if e.Kind != job.EventFinished || e.Generation != 2 {
					t.Errorf("%s: got %+v, want the last event of generation 2", tt.name, e)
				}
			}
		})
	}
}

// The event that a follower makes itself is numbered as if the attempt had sent it: readers leave out what has the number
// of an earlier one.
func TestConclude(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		name string
		last job.Event
		want uint64
	}{
		{"no event came", job.Event{}, 1},
		{"after those of the attempt", job.Event{Generation: 2, Attempt: 3, Seq: 8}, 9},
		{"after those of another attempt", job.Event{Generation: 2, Attempt: 2, Seq: 8}, 1},
		{"after those of another generation", job.Event{Generation: 1, Attempt: 3, Seq: 8}, 1},
	} {
		var got job.Event
		f := &follower{id: "X", last: tt.last, yield: func(e job.Event, _ error) bool { got = e; return true }}
		if err := f.conclude(&job.Result{Generation: 2, Attempt: 3, Outcome: job.Failed, Reason: job.ReasonExit, Message: "why"}); err != nil {
			t.Errorf("%s: %v", tt.name, err)
		}
		if got.Seq != tt.want || got.JobID != "X" || got.Outcome != job.Failed || got.Reason != job.ReasonExit || got.Text != "why" {
			t.Errorf("%s: got %+v, want number %d and what the result says", tt.name, got, tt.want)
		}
	}
}
