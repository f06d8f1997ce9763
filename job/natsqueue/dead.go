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
	return deadLetters{c.q}.each(ctx)
}

// RequeueDead puts a dead job back as its next generation: the record, then the
// token, then the letter. Each step may be repeated. See job.Client.
func (c *Client) RequeueDead(ctx context.Context, id job.ID) error {
	if err := (deadLetters{c.q}).requeue(ctx, id); err != nil {
		return fmt.Errorf("requeue dead job %s: %w", id, c.q.rooms.explain(ctx, err))
	}
	return nil
}

// DropDead forgets a dead letter. It needs the right to publish only if the letter's result is not there yet: then it
// publishes the result itself. See job.Client.
func (c *Client) DropDead(ctx context.Context, id job.ID) error {
	if err := (deadLetters{c.q}).drop(ctx, id); err != nil {
		return fmt.Errorf("drop dead job %s: %w", id, c.q.rooms.explain(ctx, err))
	}
	return nil
}

// deadLetters are the dead letters of one queue.
type deadLetters struct{ q *Conn }

func (d deadLetters) each(ctx context.Context) iter.Seq2[job.DeadLetter, error] {
	return func(yield func(job.DeadLetter, error) bool) {
		subjects, err := d.q.streams.dead.Subjects(ctx, string(d.q.names)+".X.>")
		if err != nil {
			yield(job.DeadLetter{}, fmt.Errorf("list dead letters: %w", err))
			return
		}
		order := make([]string, 0, len(subjects))
		for s := range subjects {
			order = append(order, s)
		}
		slices.SortFunc(order, func(a, b string) int {
			_, idA, _, _ := d.q.names.parseKept(a)
			_, idB, _, _ := d.q.names.parseKept(b)
			return cmp.Compare(idB, idA)
		})
		for part := range slices.Chunk(order, lettersPage) {
			letters, err := d.read(ctx, part)
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

// read reads the dead letters of subjects, in their order, and the results beside them. One that was dropped just now is
// left out.
func (d deadLetters) read(ctx context.Context, subjects []string) ([]deadListed, error) {
	stored, results := map[string]*jetstream.RawStreamMsg{}, map[string]*jetstream.RawStreamMsg{}
	into := func(found map[string]*jetstream.RawStreamMsg) func(*jetstream.RawStreamMsg) {
		return func(msg *jetstream.RawStreamMsg) { found[msg.Subject] = msg }
	}
	var published []string
	for _, s := range subjects {
		if queue, id, gen, ok := d.q.names.parseKept(s); ok {
			published = append(published, d.q.names.result(queue, id, gen))
		}
	}
	if err := d.q.streams.dead.LastOfEach(ctx, subjects, into(stored)); err != nil {
		return nil, err
	}
	if err := d.q.streams.results.LastOfEach(ctx, published, into(results)); err != nil {
		return nil, err
	}
	var all []deadListed
	for _, s := range subjects {
		if msg := stored[s]; msg != nil {
			l, err := d.parse(msg, results)
			all = append(all, deadListed{l, err})
		}
	}
	return all, nil
}

// parse makes one dead letter and the result beside it, which may have expired.
func (d deadLetters) parse(msg *jetstream.RawStreamMsg, results map[string]*jetstream.RawStreamMsg) (job.DeadLetter, error) {
	queue, id, gen, ok := d.q.names.parseKept(msg.Subject)
	if !ok {
		return job.DeadLetter{}, fmt.Errorf("%w: subject %.200q", job.ErrUnreadable, msg.Subject)
	}
	l := job.DeadLetter{ID: id, Queue: queue, Generation: gen, At: msg.Time, Spec: msg.Data}
	if err := json.Unmarshal([]byte(msg.Header.Get(headerStatus)), &l.Status); err != nil {
		return l, fmt.Errorf("status of job %s: %w: %w", id, job.ErrUnreadable, err)
	}
	var labels specSummary
	if json.Unmarshal(msg.Data, &labels) == nil {
		l.Status.Labels = labels.Labels
	}
	result := results[d.q.names.result(queue, id, gen)]
	if result == nil {
		return l, nil
	}
	var err error
	l.Result, err = decodeResult(result.Data)
	return l, err
}

func (d deadLetters) requeue(ctx context.Context, id job.ID) error {
	msg, err := d.latest(ctx, id)
	if err != nil {
		return err
	}
	queue, _, gen, _ := d.q.names.parseKept(msg.Subject)
	v, err := d.q.records.load(ctx, id)
	if err != nil {
		return err
	}
	v, err = d.q.records.change(ctx, id, v, func(rec *record) *record {
		if rec == nil || (rec.State.Final() && rec.Generation == gen) {
			return nextGeneration(rec, queue, gen, msg)
		}
		return nil // an earlier call wrote the record, and was cut off
	}, func(rec *record) bool { return rec.Generation == gen+1 })
	if err != nil {
		return err
	}
	if v.rec.State == job.StateQueued && v.rec.Generation == gen+1 {
		if err := d.q.putBack(ctx, id, v.rec, msg.Data); err != nil {
			return err
		}
	}
	return d.q.streams.dead.Delete(ctx, msg.Sequence)
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

func (d deadLetters) drop(ctx context.Context, id job.ID) error {
	msg, err := d.latest(ctx, id)
	if err != nil {
		return err
	}
	v, err := d.q.records.load(ctx, id)
	if err != nil {
		return err
	}
	if _, _, gen, _ := d.q.names.parseKept(msg.Subject); v.rec != nil && v.rec.State.Final() && v.rec.Generation == gen {
		// Publish the result first: a worker that finds the token later takes it as proof that the letter existed.
		result, err := d.q.streams.results.Last(ctx, d.q.names.result(v.rec.Queue, id, gen))
		if err == nil && result == nil && v.rec.Result != nil {
			err = d.q.decisions.publishResult(ctx, id, v.rec)
		}
		if err != nil {
			return err
		}
	}
	return d.q.streams.dead.Delete(ctx, msg.Sequence)
}

// latest reads the message of a job's latest dead letter.
func (d deadLetters) latest(ctx context.Context, id job.ID) (*jetstream.RawStreamMsg, error) {
	if err := checkID(id); err != nil {
		return nil, err
	}
	msg, err := d.q.streams.dead.Last(ctx, d.q.names.anyLetter(id))
	if err == nil && msg == nil {
		err = fmt.Errorf("%w among the dead letters", job.ErrNotFound)
	}
	return msg, err
}
