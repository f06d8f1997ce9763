package natsqueue

import (
	"context"
	"encoding/json"
	"fmt"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"slipway/job"
)

// record says where a job stands. Its compare-and-set is the one point that
// decides: whatever contradicts it is late.
type record struct {
	// State is queued, running or final. A delayed job is queued, with NotBefore.
	State      job.State         `json:"state"`
	Generation int               `json:"generation"`
	Fence      uint64            `json:"fence"`
	Owner      string            `json:"owner,omitempty"`
	Boot       string            `json:"boot,omitempty"` // tells two processes of one owner's name apart
	Attempt    int               `json:"attempt"`
	Counts     job.Counts        `json:"counts,omitzero"`
	Cancel     job.CancelMode    `json:"cancel,omitempty"`
	Queue      string            `json:"queue"`
	Class      job.Priority      `json:"class"`
	Name       string            `json:"name,omitempty"`
	Labels     map[string]string `json:"labels,omitempty"`

	SubmittedAt time.Time `json:"submitted_at,omitzero"`
	// NotBefore is the end of a delay: of the job's own, or of a retry.
	NotBefore  time.Time `json:"not_before,omitzero"`
	StartedAt  time.Time `json:"started_at,omitzero"`
	FinishedAt time.Time `json:"finished_at,omitzero"`

	LastFailure *job.Failure `json:"last_failure,omitempty"`
	Reason      job.Reason   `json:"reason,omitempty"`
	// Result is what was decided, byte by byte as it is published.
	Result json.RawMessage `json:"result,omitempty"`
}

// version is a record and its place in the compare-and-set. Rec is nil if there
// is none; rev then is what a create must expect.
type version struct {
	rec *record
	rev uint64
}

// held reports whether the record stands for the running claim (worker, boot, fence).
func (r *record) held(worker, boot string, fence uint64) bool {
	return r != nil && r.State == job.StateRunning && r.Fence == fence && r.Owner == worker && r.Boot == boot
}

// eligible is when the job could begin.
func (r *record) eligible() time.Time {
	if r.NotBefore.After(r.SubmittedAt) {
		return r.NotBefore
	}
	return r.SubmittedAt
}

// status tells people where the job stands.
func (r *record) status(id job.ID) job.Status {
	s := job.Status{
		ID: id, Name: r.Name, Queue: r.Queue, Labels: r.Labels, State: r.State, Generation: r.Generation,
		Attempt: r.Attempt, Fence: r.Fence, Worker: r.Owner, Cancel: r.Cancel != 0, Reason: r.Reason,
		LastFailure: r.LastFailure, Counts: r.Counts, SubmittedAt: r.SubmittedAt, EligibleAt: r.eligible(),
		StartedAt: r.StartedAt, FinishedAt: r.FinishedAt,
	}
	if s.State == job.StateQueued && r.NotBefore.After(time.Now()) {
		s.State = job.StateScheduled
	}
	return s
}

// load reads the record of id.
func (c *Conn) load(ctx context.Context, id job.ID) (version, error) {
	data, rev, err := c.getKey(ctx, c.names.records(), string(id))
	if err != nil || data == nil {
		return version{rev: rev}, err
	}
	rec := new(record)
	if err := json.Unmarshal(data, rec); err != nil {
		return version{}, fmt.Errorf("read the record of job %s: %w", id, err)
	}
	return version{rec: rec, rev: rev}, nil
}

// store writes rec if the record still is at rev. It tries once: after an error
// that is no conflict, it is unknown whether the write took effect.
func (c *Conn) store(ctx context.Context, id job.ID, rec *record, rev uint64) (uint64, error) {
	data, err := json.Marshal(rec)
	if err != nil {
		return 0, fmt.Errorf("write the record of job %s: %w", id, err)
	}
	msg := nats.NewMsg(key(c.names.records(), string(id)))
	msg.Data = data
	opts := []jetstream.PublishOpt{jetstream.WithExpectLastSequencePerSubject(rev)}
	if rec.State.Final() {
		opts = append(opts, jetstream.WithMsgTTL(c.cfg.ResultsAge.Truncate(time.Second)))
	}
	var seq uint64
	err = c.once(ctx, msg.Subject, func(ctx context.Context) error {
		ack, err := c.js.PublishMsg(ctx, msg, opts...)
		if err == nil {
			seq = ack.Sequence
		}
		return err
	})
	if err != nil {
		return 0, fmt.Errorf("write the record of job %s: %w", id, err)
	}
	return seq, nil
}

// change brings the record from v to what edit makes of it, and reads it anew
// whenever that loses. edit returns nil to leave the record as it is. mine tells
// from a record that was read anew whether it is an earlier try of this very
// change, whose confirmation was lost.
func (c *Conn) change(ctx context.Context, id job.ID, v version, edit func(*record) *record, mine func(*record) bool) (version, error) {
	unsure, behind := false, 0
	for backoff := firstBackoff; ; {
		if unsure && v.rec != nil && mine(v.rec) {
			return v, nil
		}
		next := edit(v.rec)
		if next == nil {
			return v, nil
		}
		rev, err := c.store(ctx, id, next, v.rev)
		switch {
		case err == nil:
			return version{rec: next, rev: rev}, nil
		case conflicts(err):
		case !transient(err):
			return v, err
		case !wait(ctx, backoff):
			return v, fmt.Errorf("%w: no answer from the NATS server at %s: %w", job.ErrUnavailable, c.where(), err)
		default:
			unsure, backoff = true, min(2*backoff, lastBackoff)
		}
		fresh, loadErr := c.load(ctx, id)
		if loadErr != nil {
			return v, loadErr
		}
		if behind++; !lags(fresh, v) || behind > maxBehind {
			v, behind = fresh, 0
			continue
		}
		if !wait(ctx, firstBackoff) {
			return v, fmt.Errorf("%w: the NATS servers don't agree about job %s yet: %w", job.ErrUnavailable, id, err)
		}
	}
}

// maxBehind is how often a read that lags is repeated, 20 ms apart, before it is believed.
const maxBehind = 500

// lags reports whether a read is older than what is known already: reads go to any
// replica, which may be behind. Nothing may be decided by that, above all not that a
// lease is lost. A record that is not final never goes away by itself.
func lags(read, known version) bool {
	if read.rev == 0 {
		return known.rec != nil && !known.rec.State.Final()
	}
	return read.rev < known.rev
}

// getKey reads a key's value, nil if it has none. The sequence is that of the last
// message on the key's subject, also if that only says that the key is gone.
func (c *Conn) getKey(ctx context.Context, bucketName, k string) ([]byte, uint64, error) {
	msg, err := c.last(ctx, bucket(bucketName), key(bucketName, k))
	if err != nil || msg == nil {
		return nil, 0, err
	}
	if msg.Header.Get("KV-Operation") != "" || msg.Header.Get(jetstream.MarkerReasonHeader) != "" {
		return nil, msg.Sequence, nil
	}
	return msg.Data, msg.Sequence, nil
}
