package natsqueue

import (
	"context"
	"fmt"
	"time"

	"github.com/nats-io/nats.go/jetstream"
)

// fullDelay is how long the mover waits before it tries a full queue again.
const fullDelay = 5 * time.Second

// startMover takes part in moving what comes due from SCHED to JOBS. The two are
// two streams since one that takes schedules can't refuse new jobs when it is
// full. Every worker is a mover: whoever can run the job can fetch it.
func (k *Consumer) startMover(ctx context.Context) error {
	cons, err := k.conn.setupConsumer(ctx, k.conn.retry, k.conn.names.sched(), k.conn.moverConfig())
	if err != nil {
		return err
	}
	k.mover, err = cons.Consume(k.move, jetstream.PullMaxMessages(16), jetstream.PullExpiry(30*time.Second),
		jetstream.ConsumeErrHandler(func(_ jetstream.ConsumeContext, err error) {
			k.conn.cfg.OnError(fmt.Errorf("move due jobs: %w", err))
		}))
	if err != nil {
		return fmt.Errorf("move due jobs: %w", err)
	}
	return nil
}

// move puts one due job into its lane, and then acknowledges it: a crash in between
// makes a second token.
func (k *Consumer) move(msg jetstream.Msg) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(k.ctx), patience)
	defer cancel()
	if err := k.moveOne(ctx, msg); err != nil {
		k.conn.cfg.OnError(fmt.Errorf("move a due job: %w", err))
	}
}

func (k *Consumer) moveOne(ctx context.Context, msg jetstream.Msg) error {
	meta, err := msg.Metadata()
	if err != nil {
		return err
	}
	t, ok := k.conn.newToken(msg.Subject(), msg.Headers(), msg.Data(), meta.Timestamp)
	if !ok {
		return fmt.Errorf("unexpected subject %.200q", msg.Subject())
	}
	err = k.conn.putToken(ctx, t)
	if isFull(err) {
		return k.conn.nak(ctx, msg, fullDelay)
	}
	if err != nil {
		return err // it comes again after the mover's AckWait
	}
	return k.conn.ack(ctx, msg)
}
