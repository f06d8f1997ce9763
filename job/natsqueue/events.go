package natsqueue

import (
	"context"
	"encoding/json"
	"fmt"
	"time"

	"github.com/nats-io/nats.go"

	"slipway/job"
)

// maxBatch bounds one message of events, below every server's max_payload.
const maxBatch = 256 << 10

// Emit sends events, and waits until the server has stored them: what is sent faster than the server stores it is thrown
// away there, without a sign (a fifth of 210 MB in a trial). Several messages are sent if they do
// not fit into one; each is one try. See job.Lease.
func (l *lease) Emit(ctx context.Context, events []job.Event) error {
	return l.emit(events, func(msg *nats.Msg) error {
		_, err := l.k.q.js.TryPublish(ctx, msg)
		return err
	})
}

// announce is Emit without waiting: nobody counts what is lost, and the caller has better to do.
func (l *lease) announce(e job.Event) error {
	return l.emit([]job.Event{e}, l.k.q.js.Core().PublishMsg)
}

func (l *lease) emit(events []job.Event, send func(*nats.Msg) error) error {
	var batch []json.RawMessage
	size := 0
	for i := range events {
		one, err := json.Marshal(l.stamp(events[i]))
		if err != nil {
			return fmt.Errorf("emit events: %w", err)
		}
		if size+len(one) > maxBatch && size > 0 {
			if err := l.send(batch, send); err != nil {
				return err
			}
			batch, size = nil, 0
		}
		batch, size = append(batch, one), size+len(one)+1
	}
	if len(batch) == 0 {
		return nil
	}
	return l.send(batch, send)
}

// stamp fills in which attempt e belongs to.
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

func (l *lease) send(batch []json.RawMessage, send func(*nats.Msg) error) error {
	data, err := json.Marshal(batch)
	if err != nil {
		return fmt.Errorf("emit events: %w", err)
	}
	msg := nats.NewMsg(l.k.q.names.event(l.d.Worker, l.d.ID, l.d.Generation))
	msg.Data = data
	if err := send(msg); err != nil {
		return fmt.Errorf("emit events: %w: %w", job.ErrUnavailable, err)
	}
	return nil
}

// lastSeq is the number of the attempt's last event that is stored, 0 without one.
func (l *lease) lastSeq(ctx context.Context) (uint64, error) {
	q := l.k.q
	msg, err := q.streams.events.Last(ctx, q.names.anyEvent(l.d.ID))
	if err != nil || msg == nil {
		return 0, err
	}
	var events []job.Event
	_ = json.Unmarshal(msg.Data, &events) // a foreign program's message has none
	var seq uint64
	for _, e := range events {
		if e.Generation == l.d.Generation && e.Attempt == l.d.Attempt {
			seq = max(seq, e.Seq)
		}
	}
	return seq, nil
}
