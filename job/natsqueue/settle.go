package natsqueue

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"slipway/internal/pause"
	"slipway/job"
	"slipway/job/natsqueue/internal/jsconn"
)

// headerStatus is where a dead letter keeps the job's status. Its payload is the
// spec, whole.
const headerStatus = "Slipway-Status"

// decisions makes records final, and does what follows: dead letter, result, acknowledgment.
type decisions struct {
	names         names
	js            *jsconn.Conn
	records       records
	results, dead jsconn.Stream
}

// conclude makes rec final with r, whose identity is filled in from rec. It writes nothing.
func (d decisions) conclude(id job.ID, rec *record, r *job.Result) error {
	r.JobID, r.Generation, r.Queue, r.SubmittedAt = id, rec.Generation, rec.Queue, rec.SubmittedAt
	r.Attempt, r.Fence = rec.Attempt, rec.Fence
	if rec.Owner != "" {
		r.Worker = rec.Owner
	}
	if r.Name == "" {
		r.Name = rec.Name
	}
	if r.Labels == nil {
		r.Labels = rec.Labels
	}
	if r.Version == "" {
		r.Version = job.Version
	}
	if r.FinishedAt.IsZero() {
		r.FinishedAt = time.Now().UTC()
	}
	data, err := encodeResult(r, d.maxResult())
	if err != nil {
		return fmt.Errorf("encode the result: %w", err)
	}
	rec.State, rec.Reason, rec.FinishedAt, rec.Result = job.FinalState(r.Outcome), r.Reason, r.FinishedAt, data
	return nil
}

// maxResult is the largest encoded result: the record holds it, too, until it is published.
func (d decisions) maxResult() int {
	return int(min(d.js.Core().MaxPayload(), 1<<20)) - 64<<10
}

// settle does what follows a decision: dead letter, result, acknowledgment, in this order. A worker that dies in between
// leaves the token, and the worker that gets the token next does all of it again. spec and msg are nil without a token in
// hand; v has no revision if the decision is in no record.
func (d decisions) settle(ctx context.Context, id job.ID, v version, spec []byte, msg jetstream.Msg) error {
	done, err := d.publish(ctx, id, v, spec)
	if err != nil {
		return fmt.Errorf("settle job %s: %w", id, err)
	}
	if !done {
		return nil // the worker that gets the token has the spec, and settles
	}
	// A large result that stays in the record does no harm but to lists: that is no reason to keep the token.
	fault := d.lighten(ctx, id, v)
	if msg != nil {
		fault = errors.Join(fault, d.js.Ack(ctx, msg))
	}
	if fault != nil {
		return fmt.Errorf("settle job %s: %w", id, fault)
	}
	return nil
}

// publish keeps the dead letter and publishes the result. It reports false if it lacks the spec for the letter. A record
// without its result says that all of it was done.
func (d decisions) publish(ctx context.Context, id job.ID, v version, spec []byte) (done bool, err error) {
	if v.rec.Result == nil {
		return true, nil
	}
	if v.rec.Reason.Dead() {
		if kept, err := d.bury(ctx, id, v.rec, spec); err != nil || !kept {
			return false, err
		}
	}
	err = d.publishResult(ctx, id, v.rec)
	return err == nil, err
}

// maxInRecord is the largest result that stays in its record, in bytes. It is large enough for a job that printed little,
// and so small that a list reads thousands of records at once.
const maxInRecord = 1 << 10

// lighten takes a large result out of the record, once it is published: the record has to hold the result until then, since
// the write that decides a job also says how it ended. A list of 500 results of 840 KB took 18 s.
func (d decisions) lighten(ctx context.Context, id job.ID, v version) error {
	if v.rev == 0 || len(v.rec.Result) <= maxInRecord {
		return nil
	}
	light := *v.rec
	light.Result = nil
	_, err := d.records.write(ctx, id, &light, v.rev)
	if jsconn.Conflicts(err) {
		return nil // another worker that settles was faster, or a person put the job back
	}
	return err
}

// bury keeps the job as a dead letter, and reports whether it is kept: without the spec it can't be. The result is
// published after the letter. So a result proves that the letter was kept; if the letter is not there any more, a person
// dropped it, and it must not come back.
func (d decisions) bury(ctx context.Context, id job.ID, rec *record, spec []byte) (bool, error) {
	result, err := d.results.Last(ctx, d.names.result(rec.Queue, id, rec.Generation))
	if err != nil || result != nil {
		return err == nil, err
	}
	if spec == nil {
		letter, err := d.dead.Last(ctx, d.names.letter(rec.Queue, id, rec.Generation))
		return letter != nil, err
	}
	status := rec.status(id)
	status.Labels = nil // they are in the spec; a header has little room
	data, err := json.Marshal(status)
	if err != nil {
		return false, fmt.Errorf("keep the dead letter: %w", err)
	}
	msg := nats.NewMsg(d.names.letter(rec.Queue, id, rec.Generation))
	msg.Data = spec
	msg.Header.Set(headerStatus, string(data))
	msg.Header.Set(headerSubmitted, rec.SubmittedAt.UTC().Format(time.RFC3339Nano))
	err = d.js.EnsureCreated(ctx, "keep the dead letter", msg)
	return err == nil, err
}

// publishResult copies what rec, which still holds the result, decided to where readers wait for it.
func (d decisions) publishResult(ctx context.Context, id job.ID, rec *record) error {
	msg := nats.NewMsg(d.names.result(rec.Queue, id, rec.Generation))
	msg.Data = rec.Result
	return d.js.EnsureCreated(ctx, "publish the result", msg)
}

// published reads the latest result of a job, nil if there is none. The last
// message is that of the latest generation.
func (d decisions) published(ctx context.Context, id job.ID) (*job.Result, error) {
	return d.read(ctx, d.names.anyResult(id))
}

func (d decisions) read(ctx context.Context, subject string) (*job.Result, error) {
	msg, err := d.results.Last(ctx, subject)
	if err != nil || msg == nil {
		return nil, err
	}
	return decodeResult(msg.Data)
}

// result returns the result that rec decided: from rec, or where it was published.
func (d decisions) result(ctx context.Context, id job.ID, rec *record) (*job.Result, error) {
	if rec.Result != nil {
		return decodeResult(rec.Result)
	}
	for begin := time.Now(); ; {
		r, err := d.read(ctx, d.names.result(rec.Queue, id, rec.Generation))
		if err != nil || r != nil {
			return r, err
		}
		if time.Since(begin) > jsconn.ReplicaTime {
			return rec.outline(id), nil
		}
		if !pause.For(ctx, staleReadPause) {
			return nil, context.Cause(ctx)
		}
	}
}

func decodeResult(data []byte) (*job.Result, error) {
	r := new(job.Result)
	if err := json.Unmarshal(data, r); err != nil {
		return nil, fmt.Errorf("read a result: %w: %w", job.ErrUnreadable, err)
	}
	return r, nil
}
