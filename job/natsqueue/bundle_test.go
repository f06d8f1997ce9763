package natsqueue_test

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"slipway/job"
	"slipway/job/natsqueue"
	"slipway/test/eventually"
)

// raw speaks to the queue's server past the package.
func (b *bundle) raw() (*nats.Conn, jetstream.JetStream) {
	b.t.Helper()
	b.dialed.Do(func() {
		b.nc, b.js = dial(b.t, b.cfg.URL)
		b.t.Cleanup(b.nc.Close)
	})
	return b.nc, b.js
}

// stream is the raw stream called name in this queue.
func (b *bundle) stream(name string) jetstream.Stream {
	b.t.Helper()
	_, js := b.raw()
	s, err := js.Stream(b.t.Context(), b.cfg.Prefix+"-"+name)
	if err != nil {
		b.t.Fatal(err)
	}
	return s
}

func (b *bundle) publish(subject string, data []byte) {
	b.t.Helper()
	_, js := b.raw()
	if _, err := js.Publish(b.t.Context(), subject, data); err != nil {
		b.t.Fatalf("publish to %s: %v", subject, err)
	}
}

// stored counts the messages of a stream by subject. The one in JOBS that is no token does not count.
func (b *bundle) stored(stream, filter string) map[string]uint64 {
	b.t.Helper()
	info, err := b.stream(stream).Info(b.t.Context(), jetstream.WithSubjectFilter(filter))
	if err != nil {
		b.t.Fatal(err)
	}
	delete(info.State.Subjects, b.cfg.Prefix+".J._._._")
	return info.State.Subjects
}

func (b *bundle) next(c *natsqueue.Consumer, d time.Duration) (job.Lease, error) {
	ctx, cancel := context.WithTimeout(b.t.Context(), d)
	defer cancel()
	return c.Next(ctx)
}

func (b *bundle) mustNext(c *natsqueue.Consumer) job.Lease {
	b.t.Helper()
	l, err := b.next(c, b.bound(20*time.Second))
	if err != nil {
		b.t.Fatalf("Next: %v", err)
	}
	return l
}

func (b *bundle) nothing(c *natsqueue.Consumer, d time.Duration) {
	b.t.Helper()
	if l, err := b.next(c, d); err == nil {
		b.t.Fatalf("Next gave %+v, want nothing", l.Delivery())
	} else if !errors.Is(err, context.DeadlineExceeded) {
		b.t.Fatalf("Next: %v", err)
	}
}

// settles keeps a slot of c open until ok. No job may come, but the worker settles the tokens of decided jobs. The failure
// quotes what, the condition in words.
func (b *bundle) settles(c *natsqueue.Consumer, what string, ok func() bool) {
	b.t.Helper()
	ctx, cancel := context.WithCancel(b.t.Context())
	ended := make(chan error, 1)
	go func() {
		l, err := c.Next(ctx)
		if err == nil {
			err = fmt.Errorf("Next gave %+v, want nothing", l.Delivery())
		}
		ended <- err
	}()
	defer func() {
		cancel()
		if err := <-ended; !errors.Is(err, context.Canceled) {
			b.t.Error(err)
		}
	}()
	eventually.True(b.t, b.bound(20*time.Second), what, ok)
}

func (b *bundle) submit(j *job.Job) job.ID {
	b.t.Helper()
	if err := b.conn.Client().Submit(b.t.Context(), j); err != nil {
		b.t.Fatalf("Submit: %v", err)
	}
	return j.ID
}

func (b *bundle) commit(l job.Lease) *job.Result {
	b.t.Helper()
	r, err := l.Commit(b.t.Context(), &job.Result{Outcome: job.Succeeded})
	if err != nil {
		b.t.Fatalf("Commit: %v", err)
	}
	return r
}

func (b *bundle) token(id job.ID) string { return b.cfg.Prefix + ".J.default.normal." + string(id) }
