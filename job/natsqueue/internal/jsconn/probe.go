package jsconn

import (
	"context"
	"crypto/rand"
	"errors"
	"math"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"slipway/internal/pause"
)

// The probes use one right each, once, and leave nothing behind that lasts.

// Probe looks at the stream. A MissingError says that it is not there.
func (s Stream) Probe(ctx context.Context) error {
	err := s.c.calls.probe(ctx, "look at stream "+s.name, streamInfo+s.name, func(ctx context.Context) error {
		_, err := s.c.js.Stream(ctx, s.name)
		return err
	})
	if errors.Is(err, jetstream.ErrStreamNotFound) {
		return &MissingError{Kind: "stream", Name: s.name, err: jetstream.ErrStreamNotFound}
	}
	return err
}

// ProbeConsumer looks at a consumer, and returns how it is set. A MissingError says that it is not there.
func (s Stream) ProbeConsumer(ctx context.Context, name string) (have jetstream.ConsumerConfig, err error) {
	err = s.c.calls.probe(ctx, "look at consumer "+name, consumerInfo+s.name+"."+name, func(ctx context.Context) error {
		cons, err := s.c.js.Consumer(ctx, s.name, name)
		if err == nil {
			have = cons.CachedInfo().Config
		}
		return err
	})
	for _, missing := range []error{jetstream.ErrStreamNotFound, jetstream.ErrConsumerNotFound} {
		if errors.Is(err, missing) {
			err = &MissingError{Kind: "consumer", Name: name, err: missing}
		}
	}
	return have, err
}

// ProbeWrite proves the right to publish by a write that is refused for its sequence.
func (c *Conn) ProbeWrite(ctx context.Context, subject string) error {
	return c.calls.probe(ctx, "write", subject, func(ctx context.Context) error {
		_, err := c.js.PublishMsg(ctx, nats.NewMsg(subject), jetstream.WithExpectLastSequencePerSubject(math.MaxInt64))
		if Conflicts(err) {
			return nil
		}
		return err
	})
}

// ReplicaTime is how long a replica may take to hear of a write.
const ReplicaTime = 2 * time.Second

// Probe writes a key below k that expires by itself, and reads it. A replica may answer that has not heard of the key yet,
// so the key gets a moment to be there.
func (b Bucket) Probe(ctx context.Context, k string) error {
	subject := b.Key(k + "." + rand.Text())
	err := b.c.calls.probe(ctx, "write a key", subject, func(ctx context.Context) error {
		_, err := b.c.js.PublishMsg(ctx, nats.NewMsg(subject), jetstream.WithMsgTTL(5*ReplicaTime))
		return err
	})
	if err != nil {
		return err
	}
	for begin := time.Now(); ; {
		msg, err := b.Last(ctx, subject)
		if err != nil || msg != nil {
			return err
		}
		if time.Since(begin) > ReplicaTime {
			return errors.New("a key that was just written is not there")
		}
		if !pause.For(ctx, 50*time.Millisecond) {
			return context.Cause(ctx)
		}
	}
}
