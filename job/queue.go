package job

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"time"
)

// Errors of every queue. They are matched with errors.Is.
var (
	// ErrLeaseLost: another worker claimed the job, or it was decided meanwhile. Publish nothing, drop the attempt.
	ErrLeaseLost = errors.New("lease lost")
	// ErrNotFound: no such job, or not any more.
	ErrNotFound = errors.New("job not found")
	// ErrExists: this very job was accepted before, perhaps for another time (not_before). Submitting again was harmless.
	ErrExists = errors.New("job exists")
	// ErrFull: there is no room for what was to be written: the queue is at one of its limits, or its server's store is. It is
	// certain that nothing was written. The error says what is full and what to do; the same call works once there is room.
	ErrFull = errors.New("queue is full")
	// ErrUnavailable: the queue's server does not answer. Whether the call took effect is unknown; all calls may be repeated.
	ErrUnavailable = errors.New("queue unavailable")
	// ErrUnreadable: what is stored under this job's id can't be decoded. A foreign program or another version of slipway
	// wrote it.
	ErrUnreadable = errors.New("unreadable")
	// ErrNotSetUp: the server answers, and holds no such queue. Its name is another one, or no worker was started
	// yet; the first worker sets it up.
	ErrNotSetUp = errors.New("queue is not set up")
)

// Consumer is the worker's side of a queue. It is safe for concurrent use.
type Consumer interface {
	// Next waits for a job, claims it, and returns the lease. Call it once per
	// free slot: nothing is fetched ahead. When ctx ends it stops within a second
	// or two and returns context.Cause(ctx); a job that arrived meanwhile is given back at
	// no cost. A server that is away is waited for, with back-off; Next then
	// returns ErrUnavailable only if the queue can't work at all (missing rights), and ErrNotSetUp if the queue was
	// deleted meanwhile.
	//
	// Jobs that another attempt of this process still works on, that are decided
	// already, or that used up their crash budget are dealt with inside.
	Next(ctx context.Context) (Lease, error)
}

// Lease is the right to work on one job. Its methods are safe for concurrent
// use. Exactly one of Commit, Requeue and Release ends it; the holder calls one
// of them whatever happens, except after ErrLeaseLost.
type Lease interface {
	// Delivery says what was claimed. It does not change.
	Delivery() Delivery

	// Extend confirms with the server that the lease still stands and makes it
	// last for another period. Call it every Timing.Heartbeat. ErrLeaseLost is
	// final. A call that crosses with the holder's own Commit, Requeue or Release gets
	// another error. Any other error means "not confirmed": after Timing.Lease without a
	// confirmation, counted from the start of the last confirmed call, the holder
	// must act as if the lease were lost.
	Extend(ctx context.Context) error

	// Canceled delivers what users ask for: first Cancel, then perhaps Abort.
	// It is pushed, and looked up at each Extend. The channel is never closed.
	Canceled() <-chan CancelMode

	// Emit sends events in one batch, and returns nil once the queue has them. After an error readers may
	// miss them: it is worth counting, not retrying. JobID, Generation, Attempt and Fence
	// are filled in, Seq and Time where they are zero. EventFinished is emitted by Commit, which does not wait for it.
	Emit(ctx context.Context, events []Event) error

	// Commit makes r the result of the job: compare-and-set of the record, then
	// the result, then the acknowledgment. It is the only thing that decides.
	// JobID, Generation, Queue, Attempt, Fence, Worker and SubmittedAt are filled in.
	// If a cancel won against it the job's result is canceled, and Commit returns the result that stands.
	// ErrLeaseLost if another holder decided or owns the job.
	// A queue without room is waited for as long as ctx lasts; the holder goes on to call Extend meanwhile.
	// ErrUnavailable, or ErrFull, if ctx ended first; the lease is then left to expire. A queue that keeps an outbox commits
	// the result later, unless another attempt owns the job by then.
	Commit(ctx context.Context, r *Result) (*Result, error)

	// Requeue gives the job back, to be tried again after delay, and charges
	// class: ClassJob, ClassInfra or ClassShutdown. The last failure is kept in the
	// record for people to see. If a user asked for the job's end meanwhile, it is
	// decided as canceled instead; the same goes for Release. Both wait for room as Commit does.
	Requeue(ctx context.Context, class Class, delay time.Duration, why Failure) error

	// Release gives the job back at once and at no cost: the worker stops.
	Release(ctx context.Context) error
}

// Delivery is a claimed job.
type Delivery struct {
	ID         ID
	Queue      string
	Generation int
	// Attempt counts executions from 1, whatever ended the earlier ones.
	Attempt int
	Fence   uint64
	Worker  string
	// ClaimedAt is the start of the claim: the lease counts from here, not from when Next returned.
	ClaimedAt time.Time
	// Spec is the encoded job as it was submitted. It is not validated: decode it
	// with Decode, and commit errored/spec_invalid if that fails.
	Spec        []byte
	SubmittedAt time.Time
	// EligibleAt is SubmittedAt or, if later, the job's not_before or the end of the last retry's delay.
	EligibleAt time.Time
	// Counts says how often the job was charged before.
	Counts Counts
}

// Counts says how many attempts each class was charged for.
type Counts struct {
	Job   int `json:"job,omitempty"`
	Infra int `json:"infra,omitempty"`
	Crash int `json:"crash,omitempty"`
}

// Failure says why an attempt is tried again.
type Failure struct {
	Outcome Outcome `json:"outcome"`
	Reason  Reason  `json:"reason"`
	Message string  `json:"message,omitempty"`
}

// CancelMode says how much of a job a cancel ends.
type CancelMode int

// The modes, in rising order.
const (
	// Cancel ends the running step; always-steps still run, and a workspace is saved only with push: always.
	Cancel CancelMode = iota + 1
	// Abort ends everything at once.
	Abort
)

// Timing holds the clocks of the queue protocol. They must keep the order
// DeadMan < Lease < AckWait, with at least two heartbeats in a lease: a box dies
// before its lease can be given to another worker.
type Timing struct {
	// DeadMan is how long a box lives without a sign of its worker. Default 20 s.
	DeadMan time.Duration
	// Lease is how long a worker may go on without a confirmed heartbeat. Default 45 s.
	Lease time.Duration
	// AckWait is how long the queue waits before it hands the job to another worker. Default 60 s.
	AckWait time.Duration
	// Heartbeat is the interval between two Extend calls. Default 15 s.
	Heartbeat time.Duration
}

// DefaultTiming returns the production clocks.
func DefaultTiming() Timing {
	return Timing{DeadMan: 20 * time.Second, Lease: 45 * time.Second, AckWait: time.Minute, Heartbeat: 15 * time.Second}
}

// Validate reports the first rule that t breaks, with the values that break it.
func (t Timing) Validate() error {
	switch {
	case t.Heartbeat <= 0 || t.DeadMan <= 0:
		return fmt.Errorf("timing: every clock must be positive, not dead_man %s and heartbeat %s", t.DeadMan, t.Heartbeat)
	case t.DeadMan >= t.Lease:
		return fmt.Errorf("timing: dead_man (%s) must be shorter than lease (%s), or two workers could run one job at once", t.DeadMan, t.Lease)
	case t.Lease >= t.AckWait:
		return fmt.Errorf("timing: lease (%s) must be shorter than ack_wait (%s), or two workers could run one job at once", t.Lease, t.AckWait)
	case 2*t.Heartbeat > t.Lease:
		return fmt.Errorf("timing: heartbeat (%s) must be at most half of lease (%s), or one lost packet ends a job", t.Heartbeat, t.Lease)
	}
	return nil
}

// Client is the producer's and the reader's side of a queue. It is safe for concurrent use.
//
// All methods may return ErrUnavailable and ErrNotSetUp, and those that write, ErrFull. Every method that takes an id, except
// Submit, returns ErrNotFound if nothing is known of the job, or if the job has no dead letter and the method is about that. Status, Result, Follow, Cancel,
// RequeueDead and DropDead return ErrUnreadable if what they need of the job can't be decoded. Result and Follow, which wait,
// return context.Cause(ctx) when ctx ends.
type Client interface {
	// Submit puts the encoded job of a validated spec into its queue: one write,
	// accepted once it returns nil or ErrExists, harmless to repeat. The job must
	// have an ID, which NewID makes, and a priority that there is, or none. ErrFull when the queue refuses new jobs: this one
	// was not accepted. ErrOtherJob if another job was submitted under this ID, as long as the queue remembers it.
	Submit(ctx context.Context, j *Job) error
	// Status tells where a job stands.
	Status(ctx context.Context, id ID) (Status, error)
	// List yields the jobs that match, newest first. A job that is ErrUnreadable comes with its ID and the error, and the
	// others follow; any other error ends the sequence. The same goes for DeadLetters.
	List(ctx context.Context, q ListQuery) iter.Seq2[Status, error]
	// Result returns the result of a job's latest generation, waiting for it until ctx ends.
	Result(ctx context.Context, id ID) (*Result, error)
	// Follow yields the events of a job from the first one still kept. It ends
	// after the EventFinished of the latest generation, or when ctx ends, or, unless wait is
	// set, when no more are stored.
	Follow(ctx context.Context, id ID, wait bool) iter.Seq2[Event, error]
	// Cancel asks for the end of a job, in whatever state it is. It returns the
	// state that it met: a terminal one means that the cancel came too late.
	Cancel(ctx context.Context, id ID, mode CancelMode) (State, error)
	// DeadLetters yields the jobs that slipway gave up on.
	DeadLetters(ctx context.Context) iter.Seq2[DeadLetter, error]
	// RequeueDead puts a dead job back as its next generation, with fresh budgets.
	RequeueDead(ctx context.Context, id ID) error
	// DropDead forgets a dead letter. The job's result stays.
	DropDead(ctx context.Context, id ID) error
}
