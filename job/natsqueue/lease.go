package natsqueue

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"slipway/job"
)

// lease is a claimed job. See job.Lease.
type lease struct {
	k        *Consumer
	d        job.Delivery
	token    token
	canceled chan job.CancelMode

	mu        sync.Mutex
	rec       version       // as last seen with this fence
	msg       jetstream.Msg // what is acknowledged in the end
	confirmed time.Time     // start of the last confirmed call
	mode      job.CancelMode
	phase     phase
	seq       uint64
}

// phase is how far a lease has come.
type phase int

const (
	held   phase = iota
	ending       // the holder commits or gives back; nobody else may begin to
	over         // ended by its holder
	gone         // lost
)

// errEnded answers a heartbeat that crossed with the end of its lease. It is not
// ErrLeaseLost: the holder decided, and is not to drop anything.
var errEnded = errors.New("the lease was ended by its holder")

var _ job.Lease = (*lease)(nil)

// Delivery says what was claimed.
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

// adopt makes msg, a redelivery of the job that l works on, the one that will be
// acknowledged. It reports false if l is not alive any more: then the job is up
// for a new claim, and l is lost.
func (l *lease) adopt(msg jetstream.Msg, period time.Duration) bool {
	l.mu.Lock()
	if l.phase == ending || (l.phase == held && time.Since(l.confirmed) < period) {
		l.msg = msg
		l.mu.Unlock()
		return true
	}
	l.phase = gone
	l.mu.Unlock()
	l.k.forget(l)
	return false
}

// fresh reports whether the lease was confirmed within period.
func (l *lease) fresh(period time.Duration) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.phase < over && time.Since(l.confirmed) < period
}

// lose ends the lease without touching the token: it is somebody else's.
func (l *lease) lose() error {
	l.mu.Lock()
	l.phase = gone
	l.mu.Unlock()
	l.k.forget(l)
	return l.lost()
}

func (l *lease) lost() error {
	return fmt.Errorf("job %s, fence %d: %w", l.d.ID, l.d.Fence, job.ErrLeaseLost)
}

func (l *lease) ended() error {
	return fmt.Errorf("job %s, fence %d: %w", l.d.ID, l.d.Fence, errEnded)
}

// begin takes the one right to end the lease.
func (l *lease) begin() error {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.phase != held {
		return l.lost()
	}
	l.phase = ending
	return nil
}

// finish closes a lease that began to end.
func (l *lease) finish() {
	l.mu.Lock()
	if l.phase == ending {
		l.phase = over
	}
	l.mu.Unlock()
	l.k.forget(l)
}

// Extend renews AckWait, and reads in the record whether the lease still stands.
// Neither would do alone: the server takes a stale holder's progress, too.
func (l *lease) Extend(ctx context.Context) error {
	began := time.Now()
	l.mu.Lock()
	at, msg := l.phase, l.msg
	l.mu.Unlock()
	switch at {
	case over:
		return l.ended()
	case gone:
		return l.lost()
	}
	ctx, cancel := context.WithTimeout(ctx, tryTimeout)
	defer cancel()
	c := l.k.conn
	if err := c.progress(ctx, msg); err != nil {
		return fmt.Errorf("extend the lease of job %s: %w: %w", l.d.ID, job.ErrUnavailable, err)
	}
	v, err := c.load(ctx, l.d.ID)
	if err != nil {
		return fmt.Errorf("extend the lease of job %s: %w", l.d.ID, err)
	}
	return l.confirm(v, began)
}

// confirm takes note of the record that Extend read.
func (l *lease) confirm(v version, began time.Time) error {
	l.mu.Lock()
	at, stale := l.phase, lags(v, l.rec)
	switch {
	case at == ending:
		l.confirmed = began
	case at == held && !stale && l.holds(v.rec):
		l.rec, l.confirmed = v, began
	}
	l.mu.Unlock()
	switch {
	case at == ending:
		return nil // the holder's own Commit or Requeue is under way, and will say what came of it
	case at == over:
		return l.ended()
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

// maxBatch bounds one message of events, below every server's max_payload.
const maxBatch = 256 << 10

// Emit sends events without waiting for the server. Several messages are sent if
// they do not fit into one.
func (l *lease) Emit(_ context.Context, events []job.Event) error {
	var batch []json.RawMessage
	size := 0
	for i := range events {
		one, err := json.Marshal(l.stamp(events[i]))
		if err != nil {
			return fmt.Errorf("emit events: %w", err)
		}
		if size+len(one) > maxBatch && size > 0 {
			if err := l.send(batch); err != nil {
				return err
			}
			batch, size = nil, 0
		}
		batch, size = append(batch, one), size+len(one)+1
	}
	if len(batch) == 0 {
		return nil
	}
	return l.send(batch)
}

// stamp fills in whose event it is.
func (l *lease) stamp(e job.Event) job.Event {
	e.JobID, e.Generation, e.Attempt, e.Fence = l.d.ID, l.d.Generation, l.d.Attempt, l.d.Fence
	if e.Time.IsZero() {
		e.Time = time.Now().UTC()
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	if e.Seq == 0 {
		e.Seq = l.seq + 1
	}
	l.seq = max(l.seq, e.Seq)
	return e
}

func (l *lease) send(batch []json.RawMessage) error {
	data, err := json.Marshal(batch)
	if err != nil {
		return fmt.Errorf("emit events: %w", err)
	}
	c := l.k.conn
	msg := nats.NewMsg(c.names.event(l.d.Worker, l.d.ID, l.d.Generation))
	msg.Data = data
	if err := c.nc.PublishMsg(msg); err != nil {
		return fmt.Errorf("emit events: %w: %w", job.ErrUnavailable, err)
	}
	return nil
}
