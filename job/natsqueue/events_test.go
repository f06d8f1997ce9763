package natsqueue_test

import (
	"errors"
	"strings"
	"testing"

	"slipway/job"
)

// Events that are too large for one message are sent in several, in order, and numbered through.
func TestManyEvents(t *testing.T) {
	t.Parallel()
	b := setup(t)
	id := b.submit(makeJob())
	l := b.mustNext(b.join(t, "w1"))
	events := make([]job.Event, 12)
	for i := range events {
		events[i] = job.Event{Kind: job.EventOutput, Text: strings.Repeat("x", 100<<10)}
	}
	if err := l.Emit(t.Context(), events); err != nil { // 1.2 MB: above the server's limit of a message
		t.Fatalf("Emit: %v", err)
	}
	b.commit(l)
	var last job.Event
	n := 0
	for e, err := range b.conn.Client().Follow(t.Context(), id, true) {
		if err != nil {
			t.Fatal(err)
		}
		if n++; e.Seq != uint64(n) {
			t.Errorf("event %d: got number %d", n, e.Seq)
		}
		last = e
	}
	if n != len(events)+1 || last.Kind != job.EventFinished {
		t.Errorf("events: got %d, the last %s; want %d and the end", n, last.Kind, len(events)+1)
	}
}

// Events that the server did not store are an error: whoever counts what readers miss learns it from nothing else.
func TestEmitIsConfirmed(t *testing.T) {
	t.Parallel()
	b := setup(t)
	b.submit(makeJob())
	l := b.mustNext(b.join(t, "w1"))
	if err := l.Emit(t.Context(), []job.Event{{Kind: job.EventPhase}}); err != nil {
		t.Errorf("Emit: %v", err)
	}
	_, js := b.raw()
	if err := js.DeleteStream(t.Context(), b.cfg.Prefix+"-EVENTS"); err != nil {
		t.Fatal(err)
	}
	if err := l.Emit(t.Context(), []job.Event{{Kind: job.EventPhase}}); !errors.Is(err, job.ErrUnavailable) {
		t.Errorf("Emit without a stream: got %v, want %v", err, job.ErrUnavailable)
	}
	b.commit(l)
}

// A message that is gone already counts as removed: a removal may be repeated after a lost confirmation.
func TestRemovedTwice(t *testing.T) {
	t.Parallel()
	b := setup(t)
	id := b.submit(makeJob())
	w := b.join(t, "w1")
	b.commit(b.mustNext(w))
	for range 2 {
		if err := b.conn.RemoveTokens(t.Context(), id); err != nil {
			t.Errorf("remove the tokens of a job without one: %v", err)
		}
	}
	jobs := b.stream("JOBS")
	other := b.submit(makeJob())
	msg, err := jobs.GetLastMsgForSubject(t.Context(), b.token(other))
	if err != nil {
		t.Fatal(err)
	}
	for range 2 {
		if err := b.conn.DeleteToken(t.Context(), msg.Sequence); err != nil {
			t.Errorf("delete a message: %v", err)
		}
	}
}
