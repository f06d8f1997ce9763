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

// record says where a job stands. Its compare-and-set is the one point that
// decides: a message that contradicts it came too late.
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
	Priority   job.Priority      `json:"priority"`
	Name       string            `json:"name,omitempty"`
	Labels     map[string]string `json:"labels,omitempty"`
	// Spec tells the job from another one under its id.
	Spec job.Fingerprint `json:"spec,omitempty"`

	SubmittedAt time.Time `json:"submitted_at,omitzero"`
	// NotBefore is the end of a delay: of the job's own, or of a retry.
	NotBefore  time.Time `json:"not_before,omitzero"`
	StartedAt  time.Time `json:"started_at,omitzero"`
	FinishedAt time.Time `json:"finished_at,omitzero"`

	LastFailure *job.Failure `json:"last_failure,omitempty"`
	Reason      job.Reason   `json:"reason,omitempty"`
	// Result is the decided result, byte by byte as it is published. Once it is published, a large one is taken out.
	Result json.RawMessage `json:"result,omitempty"`
}

// version is a record and its place in the compare-and-set. Without a record rec is nil, and rev is what the write of the
// first one must expect.
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

// outline is all that the record of a decided job still tells when the result itself is gone.
func (r *record) outline(id job.ID) *job.Result {
	o := &job.Result{
		Version: job.Version, JobID: id, Generation: r.Generation, Name: r.Name, Queue: r.Queue, Labels: r.Labels,
		Outcome: job.Outcome(r.State), Reason: r.Reason, Attempt: r.Attempt, Fence: r.Fence, Worker: r.Owner,
		SubmittedAt: r.SubmittedAt, StartedAt: r.StartedAt, FinishedAt: r.FinishedAt,
		Message: "the queue keeps only how this job ended; its steps and their output have expired",
	}
	if r.State == job.StateDone {
		o.Outcome = job.Succeeded
	}
	return o
}

// records are the records of one queue.
type records struct {
	js     *jsconn.Conn
	bucket jsconn.Bucket
	keep   time.Duration // how long decided ones stay
	// delayed is called by change with each error after which it tries again, of a store that is full or of a server that
	// does not answer. Nil: a store that is full ends the change at once.
	delayed func(error)
}

// awaitRoom is r with changes that wait for room until their context ends. delayed hears of each try that failed.
func (r records) awaitRoom(delayed func(error)) records {
	r.delayed = delayed
	return r
}

// load reads the record of id.
func (r records) load(ctx context.Context, id job.ID) (version, error) {
	data, rev, err := r.bucket.Get(ctx, string(id))
	if err != nil || data == nil {
		return version{rev: rev}, err
	}
	rec, err := parseRecord(id, data)
	if err != nil {
		return version{}, err
	}
	return version{rec: rec, rev: rev}, nil
}

// parseRecord reads what is stored of id, or says that it is job.ErrUnreadable.
func parseRecord(id job.ID, data []byte) (*record, error) {
	rec := new(record)
	err := json.Unmarshal(data, rec)
	if err == nil && rec.State == "" {
		err = errors.New("it has no state")
	}
	if err != nil {
		return nil, fmt.Errorf("read the record of job %s: %w: %w", id, job.ErrUnreadable, err)
	}
	return rec, nil
}

// write writes rec if the record still is at rev. It tries once: after an error
// that is no conflict, it is unknown whether the write took effect.
func (r records) write(ctx context.Context, id job.ID, rec *record, rev uint64) (uint64, error) {
	data, err := json.Marshal(rec)
	if err != nil {
		return 0, fmt.Errorf("write the record of job %s: %w", id, err)
	}
	msg := nats.NewMsg(r.bucket.Key(string(id)))
	msg.Data = data
	opts := []jetstream.PublishOpt{jetstream.WithExpectLastSequencePerSubject(rev)}
	if rec.State.Final() {
		opts = append(opts, jetstream.WithMsgTTL(r.keep.Truncate(time.Second)))
	}
	seq, err := r.js.TryPublish(ctx, msg, opts...)
	if err != nil {
		return 0, fmt.Errorf("write the record of job %s: %w", id, err)
	}
	return seq, nil
}

// change brings the record from v to what edit makes of it. Whenever another write came first it reads the record anew and
// asks edit again. A server that does not answer is waited for until ctx ends. edit returns nil to leave the record as it is. mine tells whether a record that was read anew is an
// earlier try of this very change, whose confirmation was lost.
func (r records) change(ctx context.Context, id job.ID, v version, edit func(*record) *record, mine func(*record) bool) (version, error) {
	unsure, stale := false, 0
	var roomless time.Duration // the last pause for want of room
	for backoff := (jsconn.Backoff{}); ; {
		if unsure && v.rec != nil && mine(v.rec) {
			return v, nil
		}
		next := edit(v.rec)
		if next == nil {
			return v, nil
		}
		rev, err := r.write(ctx, id, next, v.rev)
		switch {
		case err == nil:
			return version{rec: next, rev: rev}, nil
		case jsconn.Conflicts(err):
		case jsconn.IsFull(err) && r.delayed != nil:
			r.delayed(err)
			if roomless = min(max(2*roomless, firstRoomPause), fullDelay); !pause.For(ctx, roomless) {
				return v, err
			}
		case !jsconn.Transient(err):
			return v, err
		case !backoff.Wait(ctx):
			return v, fmt.Errorf("%w: no answer from the NATS server at %s: %w", job.ErrUnavailable, r.js.Where(), err)
		default:
			unsure = true
			if r.delayed != nil {
				r.delayed(err)
			}
		}
		fresh, loadErr := r.load(ctx, id)
		if loadErr != nil {
			return v, loadErr
		}
		if stale++; !fresh.olderThan(v) || stale > maxStaleReads {
			v, stale = fresh, 0
			continue
		}
		if !pause.For(ctx, staleReadPause) {
			return v, fmt.Errorf("%w: the NATS servers don't agree about job %s yet: %w", job.ErrUnavailable, id, err)
		}
	}
}

const (
	// firstRoomPause is the first pause of a change that waits for room. It doubles up to fullDelay: each try sends a whole
	// record to a server that has trouble enough.
	firstRoomPause = 250 * time.Millisecond
	// maxStaleReads is how often a read that is older than what is known is repeated before it is believed.
	maxStaleReads = 500
	// staleReadPause lies between two of these reads.
	staleReadPause = 20 * time.Millisecond
)

// olderThan reports whether v, which was read, is older than what is known already: any replica may answer a read, also
// one that is behind. Nothing may be decided by an old read, above all not that a lease is lost. A record that is not final
// never goes away by itself.
func (v version) olderThan(known version) bool {
	if v.rev == 0 {
		return known.rec != nil && !known.rec.State.Final()
	}
	return v.rev < known.rev
}

// read opens a reader of the headers of all records from a sequence on. The caller closes it.
func (r records) read(ctx context.Context, from uint64) (*jsconn.Reader, error) {
	return r.bucket.Read(ctx, "read records", r.bucket.Key(">"), jetstream.OrderedConsumerConfig{
		DeliverPolicy: jetstream.DeliverByStartSequencePolicy, OptStartSeq: from, HeadersOnly: true,
	})
}
