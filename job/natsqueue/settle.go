package natsqueue

import (
	"context"
	"encoding/json"
	"fmt"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"slipway/job"
)

// headerStatus is where a dead letter keeps the job's status. Its payload is the
// spec, whole.
const headerStatus = "Slipway-Status"

// settle does what follows a decision: dead letter, result, acknowledgment, in
// this order, so that each is repeated by whoever meets the token if the one
// before was all there was time for. spec and msg are nil if there is no token in hand.
func (c *Conn) settle(ctx context.Context, id job.ID, rec *record, spec []byte, msg jetstream.Msg) error {
	if rec.Reason.Dead() {
		kept, err := c.bury(ctx, id, rec, spec)
		if err != nil {
			return fmt.Errorf("settle job %s: %w", id, err)
		}
		if !kept {
			return nil // whoever has the token does it all
		}
	}
	if err := c.publishResult(ctx, id, rec); err != nil {
		return fmt.Errorf("settle job %s: %w", id, err)
	}
	if msg == nil {
		return nil
	}
	if err := c.ack(ctx, msg); err != nil {
		return fmt.Errorf("settle job %s: %w", id, err)
	}
	return nil
}

// publishResult copies what rec decided to where readers wait for it.
func (c *Conn) publishResult(ctx context.Context, id job.ID, rec *record) error {
	msg := nats.NewMsg(c.names.result(rec.Queue, id, rec.Generation))
	msg.Data = rec.Result
	return c.created(ctx, "publish the result", msg)
}

// bury keeps the job as a dead letter, and reports whether it is kept: without the spec it can't be. The result comes
// after it: where that is, the letter was kept before, and if it is not there any more a person dropped it.
func (c *Conn) bury(ctx context.Context, id job.ID, rec *record, spec []byte) (bool, error) {
	result, err := c.last(ctx, c.names.results(), c.names.result(rec.Queue, id, rec.Generation))
	if err != nil || result != nil {
		return err == nil, err
	}
	if spec == nil {
		letter, err := c.last(ctx, c.names.dead(), c.names.letter(rec.Queue, id, rec.Generation))
		return letter != nil, err
	}
	status := rec.status(id)
	status.Labels = nil // they are in the spec; a header has little room
	data, err := json.Marshal(status)
	if err != nil {
		return false, fmt.Errorf("keep the dead letter: %w", err)
	}
	msg := nats.NewMsg(c.names.letter(rec.Queue, id, rec.Generation))
	msg.Data = spec
	msg.Header.Set(headerStatus, string(data))
	msg.Header.Set(headerSubmitted, rec.SubmittedAt.UTC().Format(timeFormat))
	err = c.created(ctx, "keep the dead letter", msg)
	return err == nil, err
}
