package live

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"slipway/job"
)

// Clocks of Follow.
const (
	patience  = 10 * time.Second       // without news of a waiting job, before saying why
	lateNews  = 5 * time.Second        // for events after the result is there; longer than queues wait for them
	reconnect = 500 * time.Millisecond // between two tries
)

// Follow prints the events of the job id as they come, then its result, which
// it returns. A queue that is away is waited for. It ends early only when ctx does, with
// the context's cause, or when the job is not known.
//
// Events may get lost, the result may not: Follow waits for both, and the result decides.
func Follow(ctx context.Context, client job.Client, id job.ID, p Printer) (*job.Result, error) {
	f := follower{client: client, id: id, printer: p, link: link{states: make(chan bool)}}
	ctx, cancel := context.WithCancel(ctx)
	events, results := make(chan job.Event), make(chan outcome, 1)
	eventsDone := make(chan struct{})
	var all sync.WaitGroup
	all.Go(func() { defer close(eventsDone); f.events(ctx, events) })
	all.Go(func() { f.link.watch(ctx, client, id) })
	all.Go(func() {
		r, err := Await(ctx, client, id)
		results <- outcome{r, err}
	})
	out := f.loop(ctx, events, eventsDone, results)
	cancel()
	all.Wait()
	if out.err != nil {
		return nil, out.err
	}
	p.Result(out.result)
	return out.result, nil
}

type follower struct {
	client  job.Client
	id      job.ID
	printer Printer
	link    link
}

type outcome struct {
	result *job.Result
	err    error
}

// loop prints until there is a result and no more events.
func (f *follower) loop(ctx context.Context, events <-chan job.Event, eventsDone <-chan struct{}, results <-chan outcome) outcome {
	var out outcome
	var late <-chan time.Time
	quiet := time.NewTimer(patience)
	defer quiet.Stop()
	for {
		select {
		case e := <-events:
			quiet.Stop()
			f.link.heard.Store(true)
			f.link.tell(true, f.printer)
			f.printer.Event(e)
		case answers := <-f.link.states:
			f.link.tell(answers, f.printer)
		case <-quiet.C:
			f.explain(ctx)
		case out = <-results:
			if out.err != nil {
				return out
			}
			results, late = nil, time.After(lateNews)
		case <-late:
			return out
		case <-eventsDone:
			if out.result == nil {
				out = <-results
			}
			return out
		}
	}
}

// events hands on each event once, also over a reconnection, which starts from the first again.
func (f *follower) events(ctx context.Context, to chan<- job.Event) {
	var seen position
	for {
		var failed error
		for e, err := range f.client.Follow(ctx, f.id, true) {
			if err != nil {
				failed = err
				break
			}
			if !seen.advance(e) {
				continue
			}
			select {
			case to <- e:
			case <-ctx.Done():
				return
			}
		}
		if failed == nil || errors.Is(failed, job.ErrNotFound) || sleep(ctx, reconnect) != nil {
			return
		}
	}
}

// position is how far the events of a job were read.
type position struct {
	generation, attempt int
	seq                 uint64
}

func (p *position) advance(e job.Event) bool {
	next := position{e.Generation, e.Attempt, e.Seq}
	switch {
	case next.generation != p.generation:
		if next.generation < p.generation {
			return false
		}
	case next.attempt != p.attempt:
		if next.attempt < p.attempt {
			return false
		}
	case next.seq <= p.seq:
		return false
	}
	*p = next
	return true
}

// Await waits for the result of a job. A queue that is away is waited for.
func Await(ctx context.Context, client job.Client, id job.ID) (*job.Result, error) {
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
		if err := sleep(ctx, reconnect); err != nil {
			return nil, err
		}
	}
}

// Replay prints the events of a job that are stored now, without waiting for more.
func Replay(ctx context.Context, client job.Client, id job.ID, p Printer) error {
	for e, err := range client.Follow(ctx, id, false) {
		if err != nil {
			return fmt.Errorf("read events: %w", err)
		}
		p.Event(e)
	}
	if h, ok := p.(*Human); ok {
		h.Flush()
	}
	return nil
}

// explain tells somebody who has waited for a while what for.
func (f *follower) explain(ctx context.Context) {
	ctx, cancel := context.WithTimeout(ctx, 5*time.Second)
	defer cancel()
	st, err := f.client.Status(ctx, f.id)
	switch {
	case errors.Is(err, job.ErrUnavailable) || ctx.Err() != nil: // the link tells it
	case err != nil:
		f.printer.Note("no news yet: %v", err)
	case st.State == job.StateScheduled:
		f.printer.Note("waits for its time, %s", st.EligibleAt.Local().Format(time.RFC3339))
	case st.State == job.StateQueued:
		f.printer.Note("still waiting for a worker: is one running that serves queue %s, with a free slot?", st.Queue)
	}
}

func sleep(ctx context.Context, d time.Duration) error {
	select {
	case <-time.After(d):
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

// FollowInterruptible is Follow for a program in front of a person. The first
// interrupt cancels the job, the second aborts it, the third leaves it alone and
// returns ErrDetached; third says what that means, such as "leaves it alone".
func FollowInterruptible(ctx context.Context, client job.Client, id job.ID, p Printer, interrupts <-chan struct{}, third string) (*job.Result, error) {
	ctx, detach := context.WithCancelCause(ctx)
	defer detach(nil)
	sp := &syncPrinter{Printer: p}
	done := make(chan struct{})
	go func() {
		defer close(done)
		interrupted(ctx, client, id, sp, interrupts, third, detach)
	}()
	r, err := Follow(ctx, client, id, sp)
	detach(nil)
	<-done
	return r, err
}

// ErrDetached says that the person went away, the job goes on.
var ErrDetached = errors.New("detached: the job goes on without us")

func interrupted(ctx context.Context, client job.Client, id job.ID, p Printer, interrupts <-chan struct{}, third string, detach context.CancelCauseFunc) {
	next := func() bool {
		select {
		case <-interrupts:
			return true
		case <-ctx.Done():
			return false
		}
	}
	if !next() {
		return
	}
	p.Note("interrupted: canceling the job; its always-steps still run. Once more aborts it, a third time %s", third)
	cancelJob(ctx, client, id, job.Cancel, p)
	if !next() {
		return
	}
	p.Note("aborting the job")
	cancelJob(ctx, client, id, job.Abort, p)
	if next() {
		detach(ErrDetached)
	}
}

func cancelJob(ctx context.Context, client job.Client, id job.ID, mode job.CancelMode, p Printer) {
	ctx, stop := context.WithTimeout(ctx, 10*time.Second)
	defer stop()
	if _, err := client.Cancel(ctx, id, mode); err != nil && ctx.Err() == nil {
		p.Note("cancel %s: %v", id, err)
	}
}
