package natsqueue

import (
	"context"
	"crypto/rand"
	"fmt"
	"time"

	"github.com/nats-io/nats.go/jetstream"

	"slipway/job"
)

// reader reads a part of a stream in order.
type reader struct {
	ch   chan jetstream.Msg
	quit chan struct{}
	cc   jetstream.ConsumeContext
}

// read opens a reader of what filter matches. The caller closes it.
func (c *Conn) read(ctx context.Context, op, stream, filter string, cfg jetstream.OrderedConsumerConfig) (*reader, error) {
	// With a name of our own, the subject of a denial is known.
	cfg.NamePrefix, cfg.FilterSubjects = rand.Text(), []string{filter}
	api := "$JS.API.CONSUMER.CREATE." + stream + "." + cfg.NamePrefix + "_1." + filter
	r := &reader{ch: make(chan jetstream.Msg), quit: make(chan struct{})}
	err := c.retry(ctx, op, api, func(ctx context.Context) error {
		cons, err := c.js.OrderedConsumer(ctx, stream, cfg)
		if err != nil {
			return err
		}
		r.cc, err = cons.Consume(func(msg jetstream.Msg) {
			select {
			case r.ch <- msg:
			case <-r.quit:
			}
		})
		return err
	})
	return r, err
}

// next waits for a message that is known to be stored.
func (r *reader) next(ctx context.Context) (jetstream.Msg, error) {
	t := time.NewTimer(tryTimeout)
	defer t.Stop()
	select {
	case msg := <-r.ch:
		return msg, nil
	case <-ctx.Done():
		return nil, context.Cause(ctx)
	case <-t.C:
		return nil, fmt.Errorf("%w: what is stored does not arrive", job.ErrUnavailable)
	}
}

// close stops the consumer and waits for its callback.
func (r *reader) close() {
	close(r.quit)
	r.cc.Stop()
	<-r.cc.Closed()
}
