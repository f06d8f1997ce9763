package natsqueue

import (
	"context"
	"fmt"
	"time"

	"github.com/nats-io/nats.go"

	"slipway/job"
)

// recheck is how often a waiting reader looks at the record although no message
// came. It only matters if a message was lost on a connection that stayed up.
const recheck = 30 * time.Second

// Result returns the result of the latest generation. It waits for the result's message, which a plain subscription gets,
// too: a reader costs the server no consumer. See job.Client.
func (c *Client) Result(ctx context.Context, id job.ID) (*job.Result, error) {
	r, err := c.awaitResult(ctx, id)
	if err != nil {
		return nil, fmt.Errorf("result of job %s: %w", id, err)
	}
	return r, nil
}

func (c *Client) awaitResult(ctx context.Context, id job.ID) (*job.Result, error) {
	if err := checkID(id); err != nil {
		return nil, err
	}
	w, err := c.watchResult(id)
	if err != nil {
		return nil, err
	}
	defer w.close()
	for {
		again := c.q.js.Reconnected() // before the look, or a reconnect in between is missed
		r, _, err := c.decided(ctx, id)
		if r != nil || err != nil {
			return r, err
		}
		if err := w.wait(ctx, again); err != nil {
			return nil, err
		}
	}
}

// decided returns the result of the latest generation, and that generation's number. The result is nil while the
// generation is undecided.
func (c *Client) decided(ctx context.Context, id job.ID) (*job.Result, int, error) {
	s, err := c.status(ctx, id)
	if err != nil || !s.State.Final() {
		return nil, s.Generation, err
	}
	v, err := c.q.records.load(ctx, id)
	if err != nil {
		return nil, s.Generation, err
	}
	if v.rec == nil {
		r, err := c.q.decisions.published(ctx, id)
		return r, s.Generation, err
	}
	if !v.rec.State.Final() {
		return nil, v.rec.Generation, nil // a person put the job back just now
	}
	r, err := c.q.decisions.result(ctx, id, v.rec)
	return r, v.rec.Generation, err
}

// resultWatch gets the messages of one job's results.
type resultWatch struct {
	sub *nats.Subscription
	ch  chan *nats.Msg
}

func (c *Client) watchResult(id job.ID) (*resultWatch, error) {
	ch := make(chan *nats.Msg, 16)
	sub, err := c.q.js.Core().ChanSubscribe(c.q.names.anyResult(id), ch)
	if err != nil {
		return nil, fmt.Errorf("subscribe: %w: %w", job.ErrUnavailable, err)
	}
	return &resultWatch{sub: sub, ch: ch}, nil
}

func (w *resultWatch) close() { _ = w.sub.Unsubscribe() }

// wait returns when it is time to look again.
func (w *resultWatch) wait(ctx context.Context, again <-chan struct{}) error {
	t := time.NewTimer(recheck)
	defer t.Stop()
	select {
	case <-w.ch:
	case <-again:
	case <-t.C:
	case <-ctx.Done():
		return context.Cause(ctx)
	}
	return nil
}
