package runner

import (
	"context"
	"errors"
	"slices"
	"sync"
	"testing"
	"time"

	"slipway/job"
)

// fakeQueue hands out the leases that a test put into it. It is less than the
// twin in job/jobtest, so that a test can make each call of a lease fail.
type fakeQueue struct {
	leases chan *fakeLease
	next   func(context.Context) error // nil: wait for a lease
}

func newFakeQueue() *fakeQueue { return &fakeQueue{leases: make(chan *fakeLease, 100)} }

func (q *fakeQueue) Next(ctx context.Context) (job.Lease, error) {
	if q.next != nil {
		if err := q.next(ctx); err != nil {
			return nil, err
		}
	}
	select {
	case l := <-q.leases:
		return l, nil
	case <-ctx.Done():
		return nil, context.Cause(ctx)
	}
}

// fakeLease records how a job ended. Ending it twice fails the test.
type fakeLease struct {
	t        *testing.T
	delivery job.Delivery
	cancels  chan job.CancelMode

	extend func(context.Context) error
	emit   func(context.Context) error
	commit func(context.Context, *job.Result) (*job.Result, error)
	back   func() // called at the beginning of Requeue and of Release

	mu       sync.Mutex
	extended int
	events   []job.Event
	result   *job.Result
	failure  *job.Failure
	class    job.Class
	delay    time.Duration
	released bool
	ended    chan struct{}
}

func newFakeLease(t *testing.T, spec []byte) *fakeLease {
	return &fakeLease{
		t: t, cancels: make(chan job.CancelMode, 2), ended: make(chan struct{}),
		delivery: job.Delivery{
			ID: job.NewID(), Queue: "default", Generation: 1, Attempt: 1, Fence: 7, Worker: "w1", Spec: spec,
			SubmittedAt: time.Now().Add(-3 * time.Second),
		},
	}
}

func (l *fakeLease) Delivery() job.Delivery          { return l.delivery }
func (l *fakeLease) Canceled() <-chan job.CancelMode { return l.cancels }

func (l *fakeLease) Extend(ctx context.Context) error {
	l.mu.Lock()
	l.extended++
	l.mu.Unlock()
	if l.extend != nil {
		return l.extend(ctx)
	}
	return nil
}

func (l *fakeLease) Emit(ctx context.Context, events []job.Event) error {
	if l.emit != nil {
		if err := l.emit(ctx); err != nil {
			return err
		}
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	l.events = append(l.events, events...)
	return nil
}

func (l *fakeLease) Commit(ctx context.Context, r *job.Result) (*job.Result, error) {
	if l.commit != nil {
		if out, err := l.commit(ctx, r); err != nil {
			return out, err
		}
	}
	l.end(func() { l.result = r })
	return r, nil
}

func (l *fakeLease) Requeue(_ context.Context, class job.Class, delay time.Duration, why job.Failure) error {
	if l.back != nil {
		l.back()
	}
	l.end(func() { l.class, l.delay, l.failure = class, delay, &why })
	return nil
}

func (l *fakeLease) Release(ctx context.Context) error {
	if ctx.Err() != nil {
		return ctx.Err()
	}
	if l.back != nil {
		l.back()
	}
	l.end(func() { l.released = true })
	return nil
}

func (l *fakeLease) end(note func()) {
	l.mu.Lock()
	defer l.mu.Unlock()
	select {
	case <-l.ended:
		l.t.Error("the lease was ended twice")
	default:
		close(l.ended)
	}
	note()
}

// untouched fails the test if anything was said to the queue.
func (l *fakeLease) untouched() {
	l.t.Helper()
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.result != nil || l.failure != nil || l.released {
		l.t.Errorf("got result %v, failure %v, released %t; want nothing said", l.result, l.failure, l.released)
	}
}

// heartbeats is how often the lease was extended so far.
func (l *fakeLease) heartbeats() int {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.extended
}

// output joins the output events of a step.
func (l *fakeLease) output(step int) string {
	l.mu.Lock()
	defer l.mu.Unlock()
	var out []byte
	for _, e := range l.events {
		if e.Kind == job.EventOutput && e.Step == step {
			out = append(out, e.Data...)
		}
	}
	return string(out)
}

// kinds lists the events in short, and fails the test if their numbers have a gap.
func (l *fakeLease) kinds() []string {
	l.t.Helper()
	l.mu.Lock()
	defer l.mu.Unlock()
	var kinds []string
	for i, e := range l.events {
		if e.Seq != uint64(i+1) {
			l.t.Errorf("event %d has the number %d", i+1, e.Seq)
		}
		kinds = append(kinds, string(e.Kind))
		if e.Kind == job.EventPhase {
			kinds[i] += " " + e.Text
		}
	}
	return slices.Clone(kinds)
}

// observed is an Observer that counts.
type observed struct {
	NopObserver
	mu    sync.Mutex
	count map[string]int
	bytes [2]int64 // printed, dropped
	kept  int64
	lost  map[string]int64 // by cause
	moved int64            // bytes of workspaces
	step  time.Duration
	slots []int        // busy, at each change
	phase func(string) // called at the end of each phase, within the attempt; may be nil
}

func newObserved() *observed { return &observed{count: map[string]int{}, lost: map[string]int64{}} }

func (o *observed) add(name string) {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.count[name]++
}

func (o *observed) get(name string) int {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.count[name]
}

func (o *observed) Slots(_, busy int) {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.slots = append(o.slots, busy)
}

func (o *observed) JobClaimed(string, time.Duration) { o.add("claimed") }

func (o *observed) PhaseDone(phase string, _ time.Duration, ok bool) {
	if ok {
		o.add("phase " + phase)
	} else {
		o.add("phase failed " + phase)
	}
	if o.phase != nil {
		o.phase(phase)
	}
}

func (o *observed) StepDone(s job.StepStatus, took time.Duration) {
	o.add("step " + string(s))
	o.mu.Lock()
	defer o.mu.Unlock()
	o.step = took
}

// lastStep is the time of the step that ended last.
func (o *observed) lastStep() time.Duration {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.step
}

func (o *observed) StepRetried()          { o.add("step retried") }
func (o *observed) JobDone(r *job.Result) { o.add("done " + string(r.Outcome)) }

func (o *observed) JobRetried(c job.Class, _ job.Reason) { o.add("retried " + string(c)) }
func (o *observed) Heartbeat(bool)                       { o.add("heartbeat") }
func (o *observed) Conflict()                            { o.add("conflict") }
func (o *observed) Leftover()                            { o.add("leftover") }
func (o *observed) Draining()                            { o.add("draining") }
func (o *observed) Synced(direction, action string, files int, bytes int64) {
	o.addN(direction+" "+action, files)
	o.mu.Lock()
	defer o.mu.Unlock()
	o.moved += bytes
}
func (o *observed) Reaped(n int) { o.addN("reaped", n) }

func (o *observed) LeaseLost(fenced bool) {
	if fenced {
		o.add("fenced")
	} else {
		o.add("lease lost")
	}
}

func (o *observed) LogBytes(n int64) {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.bytes[0] += n
}

func (o *observed) LogDropped(n int64, _ string) {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.bytes[1] += n
}

func (o *observed) LogKept(kept, lost int64, cause string) {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.kept += kept
	if lost != 0 {
		o.lost[cause] += lost
	}
}

func (o *observed) addN(name string, n int) {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.count[name] += n
}

var errOdd = errors.New("odd")
