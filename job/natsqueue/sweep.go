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

// sweep is what the janitor knows of the records from one look to the next. It reads each version of a record once,
// and of those nothing but the headers: the decided ones stay for a month, with their results.
type sweep struct {
	c     *Conn
	began time.Time
	store store              // that was read
	from  uint64             // sequence in the records' stream that was not read yet
	open  map[job.ID]*undone // the jobs that are not decided, as far as was read
}

// store is what the records are kept in, as far as a client can tell one from another.
type store struct {
	created int64  // time of the stream, in nanoseconds
	made    uint64 // how often the connection had been re-made: a server that was away may come back with an older store
}

// sweepAge is how long a sweep is gone on with, for what else may happen to a store.
const sweepAge = 24 * time.Hour

// undone is a record that waits or runs.
type undone struct {
	rev    uint64 // of its last version
	missed uint64 // the version that had no token at the last look
}

func newSweep(c *Conn) *sweep {
	return &sweep{c: c, began: time.Now(), from: 1, open: map[job.ID]*undone{}}
}

// look deals with each record that had no token twice in a row, with nothing
// having happened to it in between.
func (s *sweep) look(ctx context.Context) error {
	tokens, err := s.c.tokens(ctx)
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

// tokens lists the jobs that a message stands for.
func (c *Conn) tokens(ctx context.Context) (map[job.ID]bool, error) {
	tokens := map[job.ID]bool{}
	for stream, filter := range map[string]string{c.names.jobs(): ".J.>", c.names.sched(): ".D.>"} {
		subjects, err := c.subjects(ctx, stream, string(c.names)+filter)
		if err != nil {
			return nil, err
		}
		for s := range subjects {
			for part := range strings.SplitSeq(s, ".") {
				tokens[job.ID(part)] = true
			}
		}
	}
	return tokens, nil
}

// read brings open up to what is stored by now. What it read counts also if it is cut short.
func (s *sweep) read(ctx context.Context) error {
	if err := s.renew(ctx); err != nil {
		return err
	}
	end, err := s.c.last(ctx, bucket(s.c.names.records()), key(s.c.names.records(), ">"))
	if err != nil || end == nil || end.Sequence < s.from {
		return err
	}
	r, err := s.c.readRecords(ctx, s.from)
	if err != nil {
		return err
	}
	defer r.close()
	for s.from <= end.Sequence {
		msg, err := r.next(ctx)
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
	now := store{made: s.c.remade()} // before the look, lest one in between counts as seen
	var last uint64
	name := bucket(s.c.names.records())
	err := s.c.retry(ctx, "look at the records", "$JS.API.STREAM.INFO."+name, func(ctx context.Context) error {
		stream, err := s.c.js.Stream(ctx, name)
		if err == nil {
			now.created, last = stream.CachedInfo().Created.UnixNano(), stream.CachedInfo().State.LastSeq
		}
		return err
	})
	if err == nil && (now != s.store || last+1 < s.from || time.Since(s.began) > sweepAge) {
		*s = *newSweep(s.c)
		s.store = now
	}
	return err
}

// readRecords reads the headers of the records from a sequence on.
func (c *Conn) readRecords(ctx context.Context, from uint64) (*reader, error) {
	return c.read(ctx, "read records", bucket(c.names.records()), key(c.names.records(), ">"), jetstream.OrderedConsumerConfig{
		DeliverPolicy: jetstream.DeliverByStartSequencePolicy, OptStartSeq: from, HeadersOnly: true,
	})
}

// note takes in one version of a record. A decided one expires, and no other does.
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
	v, err := s.c.load(ctx, id)
	switch {
	case err != nil:
		return err
	case v.rec == nil: // removed by a person
		delete(s.open, id)
		return nil
	case v.rev != u.rev: // a later version will be read; an earlier one is that of a replica that is behind
		return nil
	}
	u.missed = 0
	return s.c.repair(ctx, id, v)
}
