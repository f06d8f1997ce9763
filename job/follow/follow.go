package follow

import (
	"context"
	"errors"
	"iter"
	"sync"
	"time"

	"slipway/internal/pause"
	"slipway/job"
)

// The clocks of Job.
const (
	patience   = 10 * time.Second       // without an event, before Waiting
	lateEvents = 5 * time.Second        // for events after the result; longer than natsqueue itself waits for them
	retryDelay = 500 * time.Millisecond // between two calls that fail
)

// Job yields what happens to the job id until it has ended: its events from the
// first one that is still kept, then an Ended with its result. Events that come
// after the result are waited for up to 5 s.
//
// A queue that is away is waited for. The sequence ends early, with an error as its
// last value, only when ctx ends (context.Cause(ctx)) or when the client says that
// waiting is of no use: job.ErrNotFound, job.ErrNotSetUp, or a result that can't be
// read. The errors are the client's own, which name the job.
//
// Job starts goroutines when the caller ranges over the sequence, and all of them have
// ended when the loop has, whatever ended it. A slow loop holds the events back; none
// is dropped for it.
func Job(ctx context.Context, client job.Client, id job.ID) iter.Seq2[Update, error] {
	return After(ctx, client, id, job.Event{})
}

// After is Job for a caller who has the events up to last, from Stored or from an earlier Job: it yields those that come
// after it, and a Gap only for what is missing since. The zero event is the beginning.
func After(ctx context.Context, client job.Client, id job.ID, last job.Event) iter.Seq2[Update, error] {
	return func(yield func(Update, error) bool) {
		ctx, cancel := context.WithCancel(ctx)
		f := start(ctx, client, id, after(last))
		stop := func() { cancel(); f.all.Wait() }
		defer stop() // the loop may panic
		r, err := f.relay(ctx, yield)
		stop()
		switch {
		case errors.Is(err, errStopped):
		case err != nil:
			yield(nil, err)
		default:
			yield(Ended{r}, nil)
		}
	}
}

// Result waits for the result of the job id, also while the queue is away. It ends
// without one for the reasons that end Job early.
func Result(ctx context.Context, client job.Client, id job.ID) (*job.Result, error) {
	for {
		r, err := client.Result(ctx, id)
		switch {
		case err == nil:
			return r, nil
		case ctx.Err() != nil:
			return nil, context.Cause(ctx)
		case !errors.Is(err, job.ErrUnavailable):
			return nil, err
		}
		if !pause.For(ctx, retryDelay) {
			return nil, context.Cause(ctx)
		}
	}
}

// Stored yields the events of the job id that are stored now, each as an Event, with
// a Gap where some are missing. It neither waits for events nor tries again: its first
// error is the last value.
func Stored(ctx context.Context, client job.Client, id job.ID) iter.Seq2[Update, error] {
	return func(yield func(Update, error) bool) {
		var at position
		for e, err := range client.Follow(ctx, id, false) {
			if err != nil {
				yield(nil, err)
				return
			}
			for _, u := range at.next(e) {
				if !yield(u, nil) {
					return
				}
			}
		}
	}
}

// errStopped: the caller left its loop.
var errStopped = errors.New("the caller left the loop")

// follower is one run of Job.
type follower struct {
	client job.Client
	id     job.ID
	link   link
	all    sync.WaitGroup // the goroutines of this run

	updates chan Update // Event and Gap; closed when no more can come
	states  chan error  // what the probes found; nil: the queue answers
	results chan outcome
}

type outcome struct {
	result *job.Result
	err    error
}

// start starts the goroutines of a run, which end with ctx.
func start(ctx context.Context, client job.Client, id job.ID, at position) *follower {
	f := &follower{client: client, id: id, updates: make(chan Update), states: make(chan error), results: make(chan outcome, 1)}
	f.all.Go(func() { defer close(f.updates); f.readEvents(ctx, at) })
	f.all.Go(func() { f.probe(ctx) })
	f.all.Go(func() {
		r, err := Result(ctx, client, id)
		f.results <- outcome{r, err}
	})
	return f
}

// relay yields updates until there is a result and no more events.
func (f *follower) relay(ctx context.Context, yield func(Update, error) bool) (*job.Result, error) {
	var (
		result *job.Result
		late   <-chan time.Time
		lost   bool // a Disconnected was yielded, and no Reconnected since
	)
	tell := func(u Update) bool { return u == nil || yield(u, nil) }
	quiet := time.NewTimer(patience)
	defer quiet.Stop()
	for updates, results := f.updates, f.results; results != nil || updates != nil; {
		ok := true
		select {
		case u, open := <-updates:
			if !open {
				updates = nil
				break
			}
			quiet.Stop()
			ok = tell(change(&lost, nil)) && tell(u)
		case err := <-f.states:
			ok = tell(change(&lost, err))
		case <-quiet.C:
			ok = tell(f.explain(ctx))
		case out := <-results:
			if out.err != nil {
				return nil, out.err
			}
			result, results, late = out.result, nil, time.After(lateEvents)
		case <-late:
			return result, nil
		}
		if !ok {
			return nil, errStopped
		}
	}
	return result, nil
}

// change returns the update that follows from the state of the connection, err, if it is another state than before.
func change(lost *bool, err error) Update {
	was := *lost
	*lost = err != nil
	switch {
	case err != nil && !was:
		return Disconnected{err}
	case err == nil && was:
		return Reconnected{}
	}
	return nil
}

// readEvents sends each event after the position at once. After a failure it calls the client again, which starts with the first event.
func (f *follower) readEvents(ctx context.Context, at position) {
	for {
		var failed error
		for e, err := range f.client.Follow(ctx, f.id, true) {
			if err != nil {
				failed = err
				break
			}
			f.link.heard()
			for _, u := range at.next(e) {
				select {
				case f.updates <- u:
				case <-ctx.Done():
					return
				}
			}
		}
		if failed == nil || errors.Is(failed, job.ErrNotFound) {
			return
		}
		f.link.failed(failed)
		if !pause.For(ctx, retryDelay) {
			return
		}
	}
}

// explain looks why no event comes. It returns nil if there is nothing to tell.
func (f *follower) explain(ctx context.Context) Update {
	ctx, cancel := context.WithTimeout(ctx, probeTimeout)
	defer cancel()
	st, err := f.client.Status(ctx, f.id)
	if errors.Is(err, job.ErrUnavailable) || ctx.Err() != nil {
		return nil // a probe tells it
	}
	return Waiting{Status: st, Err: err}
}
