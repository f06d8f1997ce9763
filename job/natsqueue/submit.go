package natsqueue

import (
	"context"
	"fmt"
	"time"

	"slipway/job"
)

// Client is the producer's and the reader's side. It is safe for concurrent use.
type Client struct {
	conn *Conn
}

var _ job.Client = (*Client)(nil)

// Client returns the producer's and the reader's side of c. It lives as long as c.
func (c *Conn) Client() *Client { return &Client{conn: c} }

// Submit puts j into its queue by a single write, so there is nothing to lose
// between two. See job.Client.
func (c *Client) Submit(ctx context.Context, j *job.Job) error {
	id, err := job.ParseID(string(j.ID))
	if err != nil || id != j.ID {
		return fmt.Errorf("submit: id %.40q: not a ULID in upper case, as job.NewID makes one", j.ID)
	}
	spec, err := job.Encode(j)
	if err != nil {
		return fmt.Errorf("submit: encode: %w", err)
	}
	if limit := c.conn.maxSpec(); len(spec) > limit {
		return fmt.Errorf("submit: the encoded job has %d bytes, and this NATS server takes %d: move content into inputs with a key, or raise the server's max_payload", len(spec), limit)
	}
	t := token{id: id, queue: queueOf(j.Queue), class: classOf(j.Priority), spec: spec, submittedAt: time.Now()}
	if !queueName.MatchString(t.queue) {
		return fmt.Errorf("submit: queue %.40q: want [a-z0-9][a-z0-9-]{0,31}", t.queue)
	}
	return c.conn.submit(ctx, t, j.NotBefore)
}

func (c *Conn) submit(ctx context.Context, t token, notBefore time.Time) error {
	msg, later := c.message(t), notBefore.After(time.Now())
	if later {
		msg = c.schedule(t, 1, 0, notBefore)
	}
	err := c.create(ctx, "submit", msg)
	if isFull(err) {
		return fmt.Errorf("submit: queue %s: %w: %w", t.queue, job.ErrFull, err)
	}
	return err
}

// maxSpec is the largest spec that the server takes and that still fits into a dead letter.
func (c *Conn) maxSpec() int {
	return int(min(c.nc.MaxPayload()-headroom, job.MaxSpecBytes))
}
