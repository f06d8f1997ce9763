package natsqueue

import (
	"cmp"
	"context"
	"fmt"
	"iter"
	"slices"
	"strings"

	"github.com/nats-io/nats.go/jetstream"

	"slipway/job"
	"slipway/job/natsqueue/internal/jsconn"
)

const (
	// defaultLimit bounds a List whose query names no limit.
	defaultLimit = 100
	// listPage is how many jobs are read at once: as many as one request may ask for.
	listPage = 512
)

// List yields the jobs that match, newest first: ids sort by time. Of all jobs together it holds the ids alone; everything
// else is read page by page, while the caller takes it. See job.Client.
func (c *Client) List(ctx context.Context, q job.ListQuery) iter.Seq2[job.Status, error] {
	return func(yield func(job.Status, error) bool) {
		ids, err := c.ids(ctx)
		left := cmp.Or(max(q.Limit, 0), defaultLimit)
		for err == nil && len(ids) > 0 && left > 0 {
			p := page{c: c, ids: ids[:min(len(ids), listPage)], found: map[job.ID]listed{}}
			ids = ids[len(p.ids):]
			if err = p.read(ctx); err == nil && !p.yield(q, &left, yield) {
				return
			}
		}
		if err != nil {
			yield(job.Status{}, fmt.Errorf("list jobs: %w", err))
		}
	}
}

// page is a part of a list: the jobs of some ids, as far as they were found.
type page struct {
	c     *Client
	ids   []job.ID
	found map[job.ID]listed
}

// listed is one job of a list. err is job.ErrUnreadable, or nil.
type listed struct {
	status job.Status
	err    error
}

// read looks for each job where it may be: at its record; without one, at its token, which may move to JOBS between two
// looks; and then at its record once more, since the job may have been claimed meanwhile. A job without either expired just
// now.
func (p *page) read(ctx context.Context) error {
	at, n := p.c.q.streams, p.c.q.names
	looks := []func() error{
		func() error { return p.readRecords(ctx) },
		func() error { return p.readTokens(ctx, at.jobs, n.anyToken) },
		func() error { return p.readTokens(ctx, at.sched, n.anyWait) },
		func() error { return p.readTokens(ctx, at.sched, n.anyDue) },
		func() error { return p.readTokens(ctx, at.jobs, n.anyToken) },
		func() error { return p.readRecords(ctx) },
	}
	for _, look := range looks {
		if err := look(); err != nil || len(p.missing()) == 0 {
			return err
		}
	}
	return nil
}

// missing are the jobs that were not found yet.
func (p *page) missing() []job.ID {
	return slices.DeleteFunc(slices.Clone(p.ids), func(id job.ID) bool { _, found := p.found[id]; return found })
}

func (p *page) readRecords(ctx context.Context) error {
	var keys []string
	for _, id := range p.missing() {
		keys = append(keys, string(id))
	}
	return p.c.q.streams.records.GetEach(ctx, keys, func(key string, value []byte) {
		id := job.ID(key)
		rec, err := parseRecord(id, value)
		if err != nil {
			p.found[id] = listed{status: job.Status{ID: id}, err: err}
			return
		}
		p.found[id] = listed{status: rec.status(id)}
	})
}

func (p *page) readTokens(ctx context.Context, stream jsconn.Stream, filter func(job.ID) string) error {
	var filters []string
	for _, id := range p.missing() {
		filters = append(filters, filter(id))
	}
	return stream.LastOfEach(ctx, filters, func(msg *jetstream.RawStreamMsg) {
		if t, ok := p.c.q.tokens.parseStored(msg); ok {
			p.found[t.id] = listed{status: t.record().status(t.id)}
		}
	})
}

// yield hands on what matches, and counts it off from left. It reports whether the list goes on.
func (p *page) yield(q job.ListQuery, left *int, yield func(job.Status, error) bool) bool {
	for _, id := range p.ids {
		l, found := p.found[id]
		switch {
		case !found:
		case l.err != nil:
			if !yield(l.status, fmt.Errorf("list jobs: %w", l.err)) {
				return false
			}
		case q.Matches(l.status):
			if !yield(l.status, nil) {
				return false
			}
			if *left--; *left == 0 {
				return false
			}
		}
	}
	return true
}

// ids lists every job that has a record or a token, newest first. The server
// answers with the subjects alone.
func (c *Client) ids(ctx context.Context) ([]job.ID, error) {
	var ids []job.ID
	at, prefix := c.q.streams, string(c.q.names)
	for _, place := range []struct {
		stream jsconn.Stream
		filter string
		part   int // of the subject, from its end
	}{
		{at.records.Stream, at.records.Key(">"), 1},
		{at.jobs, prefix + ".J.>", 1},
		{at.sched, prefix + ".D.wait.>", 3},
		{at.sched, prefix + ".D.due.>", 1},
	} {
		subjects, err := place.stream.Subjects(ctx, place.filter)
		if err != nil {
			return nil, err
		}
		for s := range subjects {
			parts := strings.Split(s, ".")
			if len(parts) < place.part {
				continue
			}
			if id := job.ID(parts[len(parts)-place.part]); checkID(id) == nil {
				ids = append(ids, id)
			}
		}
	}
	slices.SortFunc(ids, func(a, b job.ID) int { return cmp.Compare(b, a) })
	return slices.Compact(ids), nil
}
