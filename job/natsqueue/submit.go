package natsqueue

import (
	"context"
	"fmt"
	"time"

	"slipway/job"
	"slipway/job/natsqueue/internal/jsconn"
)

// Client is the producer's and the reader's side. It is safe for concurrent use.
type Client struct {
	q *Conn
}

var _ job.Client = (*Client)(nil)

// Submit puts j into its queue by a single write: between two writes a crash could lose the job. See job.Client.
func (c *Client) Submit(ctx context.Context, j *job.Job) error {
	id, err := job.ParseID(string(j.ID))
	if err != nil || id != j.ID {
		return fmt.Errorf("submit: id %.40q: not a ULID in upper case, as job.NewID makes one", j.ID)
	}
	spec, err := job.Encode(j)
	if err != nil {
		return fmt.Errorf("submit: encode: %w", err)
	}
	if limit := c.maxSpec(); len(spec) > limit {
		return fmt.Errorf("submit: the encoded job has %d bytes, and this NATS server takes %d: move content into inputs with a key, or raise the server's max_payload", len(spec), limit)
	}
	t := token{id: id, queue: queueOf(j.Queue), priority: priorityOf(j.Priority), spec: spec, submittedAt: time.Now()}
	if !queueName.MatchString(t.queue) {
		return fmt.Errorf("submit: queue %.40q: want [a-z0-9][a-z0-9-]{0,31}", t.queue)
	}
	msg := c.q.tokens.message(t)
	if j.NotBefore.After(time.Now()) {
		msg = c.q.tokens.schedule(t, 1, 0, j.NotBefore)
	}
	err = c.q.js.CreateFirst(ctx, "submit", msg)
	if jsconn.IsFull(err) {
		return fmt.Errorf("submit: queue %s: %w: %w", t.queue, job.ErrFull, err)
	}
	return err
}

// maxSpec is the largest spec that the server takes and that still fits into a dead letter.
func (c *Client) maxSpec() int {
	return int(min(c.q.js.Core().MaxPayload()-headroom, job.MaxSpecBytes))
}
