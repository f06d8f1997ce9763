package natsqueue_test

import (
	"errors"
	"testing"
	"time"

	"slipway/job"
	"slipway/job/natsqueue"
)

// A prefix that nobody set up is told at once, by every call.
func TestNotSetUp(t *testing.T) {
	t.Parallel()
	b := setup(t)
	b.cfg.Prefix += "-other"
	conn := b.connect()
	c := conn.Client()
	later, id := makeJob(), job.NewID()
	later.NotBefore = time.Now().Add(time.Hour)
	for name, call := range map[string]func() error{
		"Submit":           func() error { return c.Submit(t.Context(), makeJob()) },
		"Submit for later": func() error { return c.Submit(t.Context(), later) },
		"Status":           func() error { _, err := c.Status(t.Context(), id); return err },
		"Result":           func() error { _, err := c.Result(t.Context(), id); return err },
		"Cancel":           func() error { _, err := c.Cancel(t.Context(), id, job.Cancel); return err },
		"RequeueDead":      func() error { return c.RequeueDead(t.Context(), id) },
		"DropDead":         func() error { return c.DropDead(t.Context(), id) },
		"List": func() (err error) {
			for _, err = range c.List(t.Context(), job.ListQuery{}) {
			}
			return err
		},
		"Follow": func() (err error) {
			for _, err = range c.Follow(t.Context(), id, true) {
			}
			return err
		},
		"DeadLetters": func() (err error) {
			for _, err = range c.DeadLetters(t.Context()) {
			}
			return err
		},
		"Depth":    func() error { _, err := conn.Depth(t.Context()); return err },
		"Workers":  func() error { _, err := conn.Workers(t.Context()); return err },
		"Consumer": func() error { _, err := conn.Consumer(t.Context(), natsqueue.ConsumerConfig{Worker: "w1"}); return err },
	} {
		began := time.Now()
		err := call()
		if !errors.Is(err, job.ErrNotSetUp) || errors.Is(err, job.ErrUnavailable) {
			t.Errorf("%s: got %v, want ErrNotSetUp", name, err)
			continue
		}
		contains(t, err, b.cfg.Prefix, "setting Prefix", "worker")
		if took := time.Since(began); took > 3*time.Second {
			t.Errorf("%s: took %s, want it at once", name, took)
		}
	}
}

// A stream for which nobody answers is waited for as long as the queue is known: as far as the caller sees it has no
// leader, or is about to be made.
func TestSilentStream(t *testing.T) {
	t.Parallel()
	b := setup(t)
	_, js := b.raw()
	if err := js.DeleteStream(t.Context(), "KV_"+b.cfg.Prefix+"-jobs"); err != nil {
		t.Fatal(err)
	}
	got := make(chan error, 1)
	go func() {
		_, err := b.conn.Client().Status(t.Context(), job.NewID())
		got <- err
	}()
	select {
	case err := <-got:
		t.Fatalf("Status: got %v before the stream was back, want it to wait", err)
	case <-time.After(time.Second):
	}
	if err := b.connect().Setup(t.Context()); err != nil {
		t.Fatal(err)
	}
	if err := <-got; !errors.Is(err, job.ErrNotFound) {
		t.Errorf("Status: got %v, want ErrNotFound of the stream that is back", err)
	}
}
