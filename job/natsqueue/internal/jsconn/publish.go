package jsconn

import (
	"context"
	"errors"
	"fmt"
	"maps"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"slipway/job"
)

// Publish stores a message, and repeats the call until the server answers.
func (c *Conn) Publish(ctx context.Context, op string, msg *nats.Msg, opts ...jetstream.PublishOpt) error {
	return c.calls.call(ctx, op, msg.Subject, func(ctx context.Context) error {
		_, err := c.js.PublishMsg(ctx, &nats.Msg{Subject: msg.Subject, Header: maps.Clone(msg.Header), Data: msg.Data}, opts...)
		return err
	})
}

// Replace is Publish for a message that takes the place of the one with the sequence last, 0 for none. Conflicts tells
// whether the last message of its subject is another one, perhaps by an earlier try of the same call. It returns the new
// message's sequence.
func (c *Conn) Replace(ctx context.Context, op string, msg *nats.Msg, last uint64, opts ...jetstream.PublishOpt) (seq uint64, err error) {
	opts = append(opts, jetstream.WithExpectLastSequencePerSubject(last))
	err = c.calls.call(ctx, op, msg.Subject, func(ctx context.Context) error {
		ack, err := c.js.PublishMsg(ctx, &nats.Msg{Subject: msg.Subject, Header: maps.Clone(msg.Header), Data: msg.Data}, opts...)
		if err == nil {
			seq = ack.Sequence
		}
		return err
	})
	return seq, err
}

// TryPublish stores a message by a single try, and returns its sequence. After an error for which Conflicts is false it is
// unknown whether the message was stored.
func (c *Conn) TryPublish(ctx context.Context, msg *nats.Msg, opts ...jetstream.PublishOpt) (seq uint64, err error) {
	err = c.calls.tryOnce(ctx, msg.Subject, func(ctx context.Context) error {
		ack, err := c.js.PublishMsg(ctx, msg, opts...)
		if err == nil {
			seq = ack.Sequence
		}
		return err
	})
	return seq, err
}

// CreateFirst stores a message as the first of its subject. job.ErrExists says that there is one already, perhaps by an
// earlier try of the same call.
func (c *Conn) CreateFirst(ctx context.Context, op string, msg *nats.Msg) error {
	return c.CreateOnly(ctx, op, msg, msg.Subject)
}

// CreateOnly is CreateFirst for a message that has to be the first of all whose subjects match filter. The message's own
// subject is one of them.
func (c *Conn) CreateOnly(ctx context.Context, op string, msg *nats.Msg, filter string) error {
	err := c.Publish(ctx, op, msg, jetstream.WithExpectLastSequenceForSubject(0, filter))
	if Conflicts(err) {
		return fmt.Errorf("%s: %w", op, job.ErrExists)
	}
	return err
}

// EnsureCreated is CreateFirst for a message that may be there already.
func (c *Conn) EnsureCreated(ctx context.Context, op string, msg *nats.Msg) error {
	if err := c.CreateFirst(ctx, op, msg); !errors.Is(err, job.ErrExists) {
		return err
	}
	return nil
}
