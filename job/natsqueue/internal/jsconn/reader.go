package jsconn

import (
	"context"
	"crypto/rand"
	"fmt"
	"time"

	"github.com/nats-io/nats.go/jetstream"

	"slipway/job"
)

// Reader reads a part of a stream in order. The caller calls Close.
type Reader struct {
	// Messages gives one message after the other. It is never closed.
	Messages chan jetstream.Msg

	quit    chan struct{}
	consume jetstream.ConsumeContext
}

// Read opens a reader of the messages that match filter. op says what for, in errors.
func (s Stream) Read(ctx context.Context, op, filter string, cfg jetstream.OrderedConsumerConfig) (*Reader, error) {
	// The name is made here, so that the subject of a denial is known.
	cfg.NamePrefix, cfg.FilterSubjects = rand.Text(), []string{filter}
	api := "$JS.API.CONSUMER.CREATE." + s.name + "." + cfg.NamePrefix + "_1." + filter
	r := &Reader{Messages: make(chan jetstream.Msg), quit: make(chan struct{})}
	err := s.c.calls.call(ctx, op, api, func(ctx context.Context) error {
		cons, err := s.c.js.OrderedConsumer(ctx, s.name, cfg)
		if err != nil {
			return err
		}
		r.consume, err = cons.Consume(func(msg jetstream.Msg) {
			select {
			case r.Messages <- msg:
			case <-r.quit:
			}
		})
		return err
	})
	return r, err
}

// Next waits for a message that is known to be stored.
func (r *Reader) Next(ctx context.Context) (jetstream.Msg, error) {
	t := time.NewTimer(TryTimeout)
	defer t.Stop()
	select {
	case msg := <-r.Messages:
		return msg, nil
	case <-ctx.Done():
		return nil, context.Cause(ctx)
	case <-t.C:
		return nil, fmt.Errorf("%w: a stored message did not arrive within %s", job.ErrUnavailable, TryTimeout)
	}
}

// Close stops the reader and waits for its goroutine.
func (r *Reader) Close() {
	close(r.quit)
	r.consume.Stop()
	<-r.consume.Closed()
}
