package natsqueue

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/nats-io/nats.go/jetstream"

	"slipway/job/natsqueue/internal/jsconn"
)

// fullDelay is how long the mover waits before it tries a full queue again.
const fullDelay = 5 * time.Second

// startMover takes part in moving due jobs from SCHED to JOBS. They are two streams, since a stream that takes schedules
// can't refuse new jobs when it is full. Every worker is a mover: a job can wait for a mover only while it waits for a
// worker, too.
func (k *Consumer) startMover(ctx context.Context) error {
	cons, err := k.q.ensureMover(ctx, false)
	if err != nil {
		return err
	}
	k.mover, err = cons.Consume(k.move, jetstream.PullMaxMessages(16), jetstream.PullExpiry(30*time.Second),
		jetstream.ConsumeErrHandler(func(_ jetstream.ConsumeContext, err error) {
			k.q.cfg.OnError(fmt.Errorf("move due jobs: %w", err))
		}))
	if err != nil {
		return fmt.Errorf("move due jobs: %w", err)
	}
	return nil
}

// move puts one due job into its lane, and then acknowledges it: a crash in between
// makes a second token. The other order would leave the job without one.
func (k *Consumer) move(msg jetstream.Msg) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(k.ctx), jsconn.Patience)
	defer cancel()
	if err := k.moveOne(ctx, msg); err != nil {
		k.q.cfg.OnError(fmt.Errorf("move a due job: %w", err))
	}
}

func (k *Consumer) moveOne(ctx context.Context, msg jetstream.Msg) error {
	meta, err := msg.Metadata()
	if err != nil {
		return err
	}
	t, ok := k.q.tokens.parse(msg.Subject(), msg.Headers(), msg.Data(), meta.Timestamp)
	if !ok || strings.Contains(string(t.id), ".") {
		// It fits nowhere in JOBS, and would come again for ever.
		return errors.Join(fmt.Errorf("a message was removed, since its subject %.200q is that of no job", msg.Subject()), k.q.js.Ack(ctx, msg))
	}
	err = k.q.tokens.put(ctx, t)
	if jsconn.IsFull(err) {
		return k.q.js.Nak(ctx, msg, fullDelay)
	}
	if err != nil {
		return err // it comes again after the mover's AckWait
	}
	return k.q.js.Ack(ctx, msg)
}
