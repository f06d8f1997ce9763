package natsqueue

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"

	"github.com/nats-io/nats.go/jetstream"

	"slipway/internal/hint"
	"slipway/job"
)

// Client is the producer's and the reader's side. It is safe for concurrent use.
type Client struct {
	q *Conn
}

var _ job.Client = (*Client)(nil)

// Submit puts j into its queue by a single write: between two writes a crash could lose the job. Before it, Submit looks
// for another job of that id, where the account has the right to read. Two different jobs that are submitted under one id
// at the same moment, one of them for later, can both get through; then the one that is claimed first runs, and the
// other's message is dropped and reported (Config.OnError). See job.Client.
func (c *Client) Submit(ctx context.Context, j *job.Job) error {
	t, err := newToken(j, c.maxSpec())
	if err == nil {
		err = c.submit(ctx, t, j.NotBefore)
	}
	if err != nil {
		return fmt.Errorf("submit job %s: %w", j.ID, c.q.rooms.explain(ctx, err))
	}
	return nil
}

// newToken encodes j, in at most limit bytes, and checks what the queue itself needs of it.
func newToken(j *job.Job, limit int) (token, error) {
	id, err := job.ParseID(string(j.ID))
	if err != nil || id != j.ID {
		return token{}, fmt.Errorf("id %.40q: not a ULID in upper case, as job.NewID makes one", j.ID)
	}
	spec, err := job.Encode(j)
	if err != nil {
		return token{}, err
	}
	if len(spec) > limit {
		return token{}, hint.With(fmt.Errorf("the encoded job has %d bytes, and this NATS server takes %d", len(spec), limit),
			"move content into inputs with a key, or raise the server's max_payload")
	}
	t := token{id: id, queue: queueOf(j.Queue), priority: priorityOf(j.Priority), spec: spec, submittedAt: time.Now()}
	if !queueName.MatchString(t.queue) {
		return token{}, fmt.Errorf("queue %.40q: want [a-z0-9][a-z0-9-]{0,31}", t.queue)
	}
	if !slices.Contains(priorities, t.priority) {
		return token{}, fmt.Errorf("priority %.40q: want high, normal or low", t.priority) // no worker would ever see the job
	}
	return t, nil
}

func (c *Client) submit(ctx context.Context, t token, notBefore time.Time) error {
	own := job.NewFingerprint(t.spec)
	later := notBefore.After(time.Now())
	var full error
	var look sync.WaitGroup
	look.Go(func() { full = c.q.rooms.admit(ctx, len(t.spec), later) })
	err := c.q.known(ctx, t.id, own)
	look.Wait()
	if err = cmp.Or(err, full); err != nil {
		return err
	}
	const op = "put the job into its queue"
	if later {
		err = c.q.js.CreateOnly(ctx, op, c.q.tokens.schedule(t, 1, 0, notBefore), c.q.names.anyWait(t.id))
	} else {
		err = c.q.js.CreateOnly(ctx, op, c.q.tokens.message(t), c.q.names.anyToken(t.id))
	}
	switch {
	case errors.Is(err, job.ErrExists): // written since the look: by an earlier try of this call, or by another producer
		return cmp.Or(c.q.known(ctx, t.id, own), err)
	}
	return err
}

// known looks for a job under id. It returns job.ErrExists if that is the job of the fingerprint own, *job.OtherJobError if
// it is another one, and nil if there is none. A job that has begun and is not decided counts only if it is another one:
// should it have lost its message, this submission brings it back.
func (c *Conn) known(ctx context.Context, id job.ID, own job.Fingerprint) error {
	var (
		v      version
		tokens [3]*jetstream.RawStreamMsg
		errs   [4]error
		looks  sync.WaitGroup // at once: a producer far from its server waits for one answer, not for four
	)
	looks.Go(func() { v, errs[3] = c.records.load(ctx, id) })
	for i, place := range c.tokens.places(id) {
		looks.Go(func() { tokens[i], errs[i] = place.stream.Last(ctx, place.subject) })
	}
	looks.Wait()
	for i, err := range errs {
		if _, denied := errors.AsType[*PermissionError](err); denied {
			errs[i] = nil // a producer that may only publish compares nothing
		}
	}
	if err := errors.Join(errs[:]...); err != nil {
		return err
	}
	if v.rec != nil {
		if err := v.rec.Spec.Compare(id, own); err != nil {
			return err
		}
		if v.rec.State.Final() {
			return job.ErrExists
		}
	}
	for _, msg := range tokens {
		if msg == nil {
			continue
		}
		if err := job.NewFingerprint(msg.Data).Compare(id, own); err != nil {
			return err
		}
		return job.ErrExists
	}
	return nil
}

// maxSpec is the largest spec that the server takes and that still fits into a dead letter.
func (c *Client) maxSpec() int {
	return int(min(c.q.js.Core().MaxPayload()-headroom, job.MaxSpecBytes))
}
