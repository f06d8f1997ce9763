package natsqueue

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"iter"
	"slices"

	"github.com/nats-io/nats.go/jetstream"

	"slipway/job"
)

// DeadLetters yields the jobs that slipway gave up on, newest first. See job.Client.
func (c *Client) DeadLetters(ctx context.Context) iter.Seq2[job.DeadLetter, error] {
	return func(yield func(job.DeadLetter, error) bool) {
		subjects, err := c.q.streams.dead.Subjects(ctx, string(c.q.names)+".X.>")
		if err != nil {
			yield(job.DeadLetter{}, fmt.Errorf("list dead letters: %w", err))
			return
		}
		order := make([]string, 0, len(subjects))
		for s := range subjects {
			order = append(order, s)
		}
		slices.SortFunc(order, func(a, b string) int {
			_, idA, _, _ := c.q.names.parseKept(a)
			_, idB, _, _ := c.q.names.parseKept(b)
			return cmp.Compare(idB, idA)
		})
		for part := range slices.Chunk(order, lettersPage) {
			letters, err := c.letters(ctx, part)
			if err != nil {
				yield(job.DeadLetter{}, fmt.Errorf("read dead letters: %w", err))
				return
			}
			for _, l := range letters {
				if l.err != nil {
					l.err = fmt.Errorf("read a dead letter: %w", l.err)
				}
				if !yield(l.letter, l.err) {
					return
				}
			}
		}
	}
}

// lettersPage is how many dead letters are read at once. Each may hold a large spec and a large result.
const lettersPage = 16

// deadListed is one dead letter of a list. err is job.ErrUnreadable, or nil.
type deadListed struct {
	letter job.DeadLetter
	err    error
}

// letters reads the dead letters of subjects, in their order, and the results beside them. One that was dropped just now is
// left out.
func (c *Client) letters(ctx context.Context, subjects []string) ([]deadListed, error) {
	stored, results := map[string]*jetstream.RawStreamMsg{}, map[string]*jetstream.RawStreamMsg{}
	into := func(found map[string]*jetstream.RawStreamMsg) func(*jetstream.RawStreamMsg) {
		return func(msg *jetstream.RawStreamMsg) { found[msg.Subject] = msg }
	}
	var published []string
	for _, s := range subjects {
		if queue, id, gen, ok := c.q.names.parseKept(s); ok {
			published = append(published, c.q.names.result(queue, id, gen))
		}
	}
	if err := c.q.streams.dead.LastOfEach(ctx, subjects, into(stored)); err != nil {
		return nil, err
	}
	if err := c.q.streams.results.LastOfEach(ctx, published, into(results)); err != nil {
		return nil, err
	}
	var all []deadListed
	for _, s := range subjects {
		if msg := stored[s]; msg != nil {
			d, err := c.letter(msg, results)
			all = append(all, deadListed{d, err})
		}
	}
	return all, nil
}

// letter reads one dead letter and the result beside it, which may have expired.
func (c *Client) letter(msg *jetstream.RawStreamMsg, results map[string]*jetstream.RawStreamMsg) (job.DeadLetter, error) {
	queue, id, gen, ok := c.q.names.parseKept(msg.Subject)
	if !ok {
		return job.DeadLetter{}, fmt.Errorf("%w: subject %.200q", job.ErrUnreadable, msg.Subject)
	}
	d := job.DeadLetter{ID: id, Queue: queue, Generation: gen, At: msg.Time, Spec: msg.Data}
	if err := json.Unmarshal([]byte(msg.Header.Get(headerStatus)), &d.Status); err != nil {
		return d, fmt.Errorf("status of job %s: %w: %w", id, job.ErrUnreadable, err)
	}
	var labels specSummary
	if json.Unmarshal(msg.Data, &labels) == nil {
		d.Status.Labels = labels.Labels
	}
	result := results[c.q.names.result(queue, id, gen)]
	if result == nil {
		return d, nil
	}
	var err error
	d.Result, err = decodeResult(result.Data)
	return d, err
}

// RequeueDead puts a dead job back as its next generation: the record, then the
// token, then the letter. Each step may be repeated. See job.Client.
func (c *Client) RequeueDead(ctx context.Context, id job.ID) error {
	if err := c.requeueDead(ctx, id); err != nil {
		return fmt.Errorf("requeue dead job %s: %w", id, err)
	}
	return nil
}

func (c *Client) requeueDead(ctx context.Context, id job.ID) error {
	msg, err := c.deadLetter(ctx, id)
	if err != nil {
		return err
	}
	queue, _, gen, _ := c.q.names.parseKept(msg.Subject)
	v, err := c.q.records.load(ctx, id)
	if err != nil {
		return err
	}
	v, err = c.q.records.change(ctx, id, v, func(rec *record) *record {
		if rec == nil || (rec.State.Final() && rec.Generation == gen) {
			return nextGeneration(rec, queue, gen, msg)
		}
		return nil // an earlier call wrote the record, and was cut off
	}, func(rec *record) bool { return rec.Generation == gen+1 })
	if err != nil {
		return err
	}
	if v.rec.State == job.StateQueued && v.rec.Generation == gen+1 {
		if err := c.q.putBack(ctx, id, v.rec, msg.Data); err != nil {
			return err
		}
	}
	return c.q.streams.dead.Delete(ctx, msg.Sequence)
}

// nextGeneration is the record of the next generation: fresh budgets, but a fence that
// goes on, so that no worker of the last generation can speak for this one.
func nextGeneration(rec *record, queue string, gen int, msg *jetstream.RawStreamMsg) *record {
	next := &record{
		State: job.StateQueued, Generation: gen + 1, Queue: queue, Priority: job.PriorityNormal,
		SubmittedAt: submitted(msg.Header, msg.Time), Spec: job.NewFingerprint(msg.Data),
	}
	if rec != nil {
		next.Fence, next.Priority, next.Name, next.Labels = rec.Fence, rec.Priority, rec.Name, rec.Labels
	} else {
		var s job.Status
		_ = json.Unmarshal([]byte(msg.Header.Get(headerStatus)), &s)
		next.Fence, next.Name = s.Fence, s.Name
	}
	next.Priority = priorityOf(next.Priority)
	return next
}

// putBack writes the token of rec's job again.
func (c *Conn) putBack(ctx context.Context, id job.ID, rec *record, spec []byte) error {
	return c.tokens.put(ctx, token{id: id, queue: rec.Queue, priority: rec.Priority, spec: spec, submittedAt: rec.SubmittedAt})
}

// DropDead forgets a dead letter. It needs the right to publish only if the letter's result is not there yet: then it
// publishes the result itself. See job.Client.
func (c *Client) DropDead(ctx context.Context, id job.ID) error {
	if err := c.dropDead(ctx, id); err != nil {
		return fmt.Errorf("drop dead job %s: %w", id, err)
	}
	return nil
}

func (c *Client) dropDead(ctx context.Context, id job.ID) error {
	msg, err := c.deadLetter(ctx, id)
	if err != nil {
		return err
	}
	v, err := c.q.records.load(ctx, id)
	if err != nil {
		return err
	}
	if _, _, gen, _ := c.q.names.parseKept(msg.Subject); v.rec != nil && v.rec.State.Final() && v.rec.Generation == gen {
		// Publish the result first: a worker that finds the token later takes it as proof that the letter existed.
		result, err := c.q.streams.results.Last(ctx, c.q.names.result(v.rec.Queue, id, gen))
		if err == nil && result == nil && v.rec.Result != nil {
			err = c.q.decisions.publishResult(ctx, id, v.rec)
		}
		if err != nil {
			return err
		}
	}
	return c.q.streams.dead.Delete(ctx, msg.Sequence)
}

// deadLetter reads the message of a job's latest dead letter.
func (c *Client) deadLetter(ctx context.Context, id job.ID) (*jetstream.RawStreamMsg, error) {
	if err := checkID(id); err != nil {
		return nil, err
	}
	msg, err := c.q.streams.dead.Last(ctx, c.q.names.anyLetter(id))
	if err == nil && msg == nil {
		err = fmt.Errorf("%w among the dead letters", job.ErrNotFound)
	}
	return msg, err
}
