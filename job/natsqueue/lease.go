package natsqueue

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/nats-io/nats.go/jetstream"

	"slipway/job"
	"slipway/job/natsqueue/internal/jsconn"
)

// lease is a claimed job. See job.Lease.
type lease struct {
	k        *Consumer
	d        job.Delivery
	token    token
	canceled chan job.CancelMode
	events   emitter

	mu        sync.Mutex
	rec       version       // as last seen with this fence
	msg       jetstream.Msg // the message to acknowledge in the end
	confirmed time.Time     // start of the last confirmed call
	mode      job.CancelMode
	state     leaseState

	kept bool // the outbox has the result; only the holder's Commit uses it
}

// leaseState is how far a lease has come.
type leaseState int

const (
	held   leaseState = iota
	ending            // the holder commits or gives back; no other call may begin to
	ended             // by its holder
	gone              // lost
)

// errEnded answers a heartbeat that crossed with the end of its lease. It is not
// ErrLeaseLost, which would make the holder drop the attempt that it is committing.
var errEnded = errors.New("the lease was ended by its holder")

var _ job.Lease = (*lease)(nil)

// Delivery is the claimed job.
func (l *lease) Delivery() job.Delivery { return l.d }

// Canceled delivers what users ask for.
func (l *lease) Canceled() <-chan job.CancelMode { return l.canceled }

// deliver hands mode to the holder, once, and never back from Abort to Cancel.
func (l *lease) deliver(mode job.CancelMode) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if mode <= l.mode || mode > job.Abort {
		return
	}
	l.mode = mode
	l.canceled <- mode // has room for each mode
}

// adopt takes msg, a redelivery of the job that l works on, as the message to acknowledge in the end. It reports false if l
// was not confirmed within period: then l is lost, and the job may be claimed anew.
func (l *lease) adopt(msg jetstream.Msg, period time.Duration) bool {
	l.mu.Lock()
	if l.state == ending || (l.state == held && time.Since(l.confirmed) < period) {
		l.msg = msg
		l.mu.Unlock()
		return true
	}
	l.state = gone
	l.mu.Unlock()
	l.k.forget(l)
	return false
}

// fresh reports whether the lease was confirmed within period.
func (l *lease) fresh(period time.Duration) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.state < ended && time.Since(l.confirmed) < period
}

// lose ends the lease without touching the token, which belongs to another worker.
func (l *lease) lose() error {
	l.mu.Lock()
	l.state = gone
	l.mu.Unlock()
	l.k.forget(l)
	return l.over(job.ErrLeaseLost)
}

// over is the error of a call that comes after the end of the lease.
func (l *lease) over(why error) error {
	return fmt.Errorf("job %s, fence %d: %w", l.d.ID, l.d.Fence, why)
}

// begin takes the one right to end the lease.
func (l *lease) begin() error {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.state != held {
		return l.over(job.ErrLeaseLost)
	}
	l.state = ending
	return nil
}

// finish closes a lease that began to end.
func (l *lease) finish() {
	l.mu.Lock()
	if l.state == ending {
		l.state = ended
	}
	l.mu.Unlock()
	l.k.forget(l)
}

// Extend renews AckWait, and reads in the record whether the lease still stands. It needs both: the server accepts the
// progress of a stale holder, too.
func (l *lease) Extend(ctx context.Context) error {
	began := time.Now()
	l.mu.Lock()
	at, msg := l.state, l.msg
	l.mu.Unlock()
	switch at {
	case ended:
		return l.over(errEnded)
	case gone:
		return l.over(job.ErrLeaseLost)
	}
	ctx, cancel := context.WithTimeout(ctx, jsconn.TryTimeout)
	defer cancel()
	c := l.k.q
	if err := c.js.Progress(ctx, msg); err != nil {
		return fmt.Errorf("extend the lease of job %s: %w: %w", l.d.ID, job.ErrUnavailable, err)
	}
	v, err := c.records.load(ctx, l.d.ID)
	if err != nil {
		return fmt.Errorf("extend the lease of job %s: %w", l.d.ID, err)
	}
	return l.confirm(v, began)
}

// confirm takes note of the record that Extend read.
func (l *lease) confirm(v version, began time.Time) error {
	l.mu.Lock()
	at, stale := l.state, v.olderThan(l.rec)
	switch {
	case at == ending:
		l.confirmed = began
	case at == held && !stale && l.holds(v.rec):
		l.rec, l.confirmed = v, began
	}
	l.mu.Unlock()
	switch {
	case at == ending:
		return nil // the holder's own Commit, Requeue or Release is under way, and reports what came of it
	case at == ended:
		return l.over(errEnded)
	case stale:
		return fmt.Errorf("extend the lease of job %s: %w: the answer is older than the lease", l.d.ID, job.ErrUnavailable)
	case at == gone || !l.holds(v.rec):
		return l.lose()
	}
	l.deliver(v.rec.Cancel)
	return nil
}

func (l *lease) holds(rec *record) bool {
	return rec.held(l.d.Worker, l.k.boot, l.d.Fence)
}
