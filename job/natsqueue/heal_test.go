package natsqueue_test

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	"slipway/job"
)

// TestDeletedLane: a consumer that an operator deleted comes back, and the jobs behind it run.
func TestDeletedLane(t *testing.T) {
	t.Parallel()
	b := setup(t)
	w := b.join(t, "w1")
	b.nothing(w, time.Second) // the pulls are open
	if err := b.stream("JOBS").DeleteConsumer(t.Context(), "default_normal"); err != nil {
		t.Fatal(err)
	}
	id := b.submit(makeJob())
	if l := b.mustNext(w); l.Delivery().ID != id {
		t.Errorf("Next: got %s, want %s", l.Delivery().ID, id)
	}
}

// TestDeletedStream: a worker does not ask for ever for jobs of a stream that is no more.
func TestDeletedStream(t *testing.T) {
	t.Parallel()
	b := setup(t)
	w := b.join(t, "w1")
	b.nothing(w, time.Second)
	nc, js := b.raw()
	looks, began := subscribe(t, nc, "$JS.API.CONSUMER.INFO."+b.cfg.Prefix+"-JOBS.*"), time.Now()
	if err := js.DeleteStream(t.Context(), b.cfg.Prefix+"-JOBS"); err != nil {
		t.Fatal(err)
	}
	defer func() { // three lanes fail each second
		if got, most := pending(t, nc, looks), int(time.Since(began).Seconds())+2; got > most {
			t.Errorf("looks: got %d, want at most %d, one a second", got, most)
		}
	}()
	for range 2 { // the second call too, at once
		_, err := b.next(w, b.bound(time.Minute))
		if !errors.Is(err, job.ErrNotSetUp) || !strings.Contains(err.Error(), b.cfg.Prefix+"-JOBS was deleted") {
			t.Fatalf("Next: got %v, want %v and the stream's name", err, job.ErrNotSetUp)
		}
	}
	if _, err := b.stream("RESULTS").Info(context.WithoutCancel(t.Context())); err != nil {
		t.Errorf("the other streams: %v", err)
	}
}
