package natsqueue

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/nats-io/nats.go/jetstream"

	"slipway/job"
)

// sweep is what the janitor knows of the records from one look to the next. It reads each version of a record once, and
// only its headers: decided records stay for a month, with their results.
type sweep struct {
	q     *Conn
	began time.Time
	store store              // that was read
	from  uint64             // the first sequence in the records' stream that was not read yet
	open  map[job.ID]*undone // the jobs that are not decided, as far as was read
}

// store identifies the storage of the records, as far as a client can tell one from another.
type store struct {
	created    int64  // when the stream was made, in nanoseconds
	reconnects uint64 // of the connection: a server that was away may come back with an older store
}

// sweepAge is how long a sweep is continued. A new one forgets whatever else may have happened to the store.
const sweepAge = 24 * time.Hour

// undone is a record that waits or runs.
type undone struct {
	rev    uint64 // of its last version
	missed uint64 // the version that had no token at the last look
}

func newSweep(q *Conn) *sweep {
	return &sweep{q: q, began: time.Now(), from: 1, open: map[job.ID]*undone{}}
}

// look repairs each record that had no token at two looks in a row, and did not change in between. One look is not enough:
// a token that moves between two streams is in neither for a moment.
func (s *sweep) look(ctx context.Context) error {
	tokens, err := s.q.tokens.all(ctx)
	if err != nil {
		return err
	}
	if err := s.read(ctx); err != nil {
		return err
	}
	var errs []error
	for id, u := range s.open {
		switch {
		case tokens[id]:
			u.missed = 0
		case u.missed != u.rev:
			u.missed = u.rev
		case ctx.Err() != nil:
			return errors.Join(append(errs, context.Cause(ctx))...)
		default:
			errs = append(errs, s.check(ctx, id, u))
		}
	}
	return errors.Join(errs...)
}

// read brings open up to what is stored by now. If it is cut short, the next call goes on where it stopped.
func (s *sweep) read(ctx context.Context) error {
	if err := s.renew(ctx); err != nil {
		return err
	}
	records := s.q.streams.records
	end, err := records.Last(ctx, records.Key(">"))
	if err != nil || end == nil || end.Sequence < s.from {
		return err
	}
	r, err := s.q.records.read(ctx, s.from)
	if err != nil {
		return err
	}
	defer r.Close()
	for s.from <= end.Sequence {
		msg, err := r.Next(ctx)
		if err != nil {
			return fmt.Errorf("read records: %w", err)
		}
		meta, err := msg.Metadata()
		if err != nil {
			return fmt.Errorf("read records: %w", err)
		}
		s.note(msg, meta.Sequence.Stream)
		s.from = meta.Sequence.Stream + 1
	}
	return nil
}

// renew starts over if what was read may be of another store, in which the same sequences stand for other versions.
func (s *sweep) renew(ctx context.Context) error {
	now := store{reconnects: s.q.js.ReconnectCount()} // before the look, or a reconnect in between would not be noticed
	info, err := s.q.streams.records.Info(ctx)
	if err != nil {
		return err
	}
	now.created = info.Created.UnixNano()
	if now != s.store || info.State.LastSeq+1 < s.from || time.Since(s.began) > sweepAge {
		*s = *newSweep(s.q)
		s.store = now
	}
	return nil
}

// note takes in one version of a record. Only a decided record has a lifetime, which its headers show.
func (s *sweep) note(msg jetstream.Msg, rev uint64) {
	id := job.ID(msg.Subject()[strings.LastIndexByte(msg.Subject(), '.')+1:])
	switch {
	case checkID(id) != nil:
	case msg.Headers().Get(jetstream.MsgTTLHeader) != "":
		delete(s.open, id)
	default:
		s.open[id] = &undone{rev: rev}
	}
}

// check looks at a record that lacks its token.
func (s *sweep) check(ctx context.Context, id job.ID, u *undone) error {
	v, err := s.q.records.load(ctx, id)
	switch {
	case err != nil:
		return err
	case v.rec == nil: // removed by a person
		delete(s.open, id)
		return nil
	case v.rev != u.rev: // a later version will be read; an earlier one comes from a replica that is behind
		return nil
	}
	u.missed = 0
	return s.repair(ctx, id, v)
}

// repair brings back the token of a job that has none, or gives the job up.
func (s *sweep) repair(ctx context.Context, id job.ID, v version) error {
	if v.rec.State == job.StateRunning {
		if w, _, err := s.q.workers.get(ctx, v.rec.Owner); err != nil || w.runs(id, v.rec.Fence) {
			return err // the owner needs no token to commit
		}
	}
	letter, err := s.q.streams.dead.Last(ctx, s.q.names.anyLetter(id))
	if err != nil {
		return err
	}
	if letter != nil {
		return s.q.putBack(ctx, id, v.rec, letter.Data)
	}
	s.q.cfg.OnError(fmt.Errorf("job %s is %s, but lost its token, and its spec with it: given up as errored", id, v.rec.State))
	return s.giveUp(ctx, id, v)
}

// giveUp decides a job whose spec is lost. It settles only its own decision: a worker that decided meanwhile has the spec
// in its token, and must keep the dead letter before it publishes the result.
func (s *sweep) giveUp(ctx context.Context, id job.ID, v version) error {
	var own *record
	at := time.Now().UTC() // tells an earlier try of this call from another's decision
	v, err := s.q.records.change(ctx, id, v, func(rec *record) *record {
		own = nil
		if rec == nil || rec.State.Final() {
			return nil
		}
		next := *rec
		next.Fence++
		r := &job.Result{Outcome: job.Errored, Reason: job.ReasonInternal, FinishedAt: at, Message: "the queue lost this job's message; submit it again under a new id"}
		if rec.Cancel != 0 { // a user wanted its end, and has it
			r.Outcome, r.Reason, r.Message = job.Canceled, job.ReasonCanceledByUser, "canceled by a user; the queue had lost this job's message"
		}
		if s.q.decisions.conclude(id, &next, r) != nil {
			return nil
		}
		own = &next
		return own
	}, func(rec *record) bool { return rec.State.Final() && rec.FinishedAt.Equal(at) })
	if err != nil || own == nil {
		return err
	}
	return s.q.decisions.settle(ctx, id, v, nil, nil)
}
