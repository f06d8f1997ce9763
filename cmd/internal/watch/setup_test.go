package watch

import (
	"context"
	"fmt"
	"iter"
	"sync/atomic"
	"time"

	"slipway/cmd/internal/eventtest"
	"slipway/internal/pause"
	"slipway/job"
)

// scripted is a client whose queue misbehaves as told.
type scripted struct {
	job.Client
	events   []job.Event   // stored from the start
	noFinish bool          // Follow never ends by itself: the last event got lost
	lastIn   time.Duration // when the last event comes
	resultIn time.Duration // when the result is there
	result   *job.Result
	unknown  bool
	denied   error // of Follow
	state    job.State
	cancels  []job.CancelMode
	canceled chan struct{}
	away     atomic.Bool // Status gets no answer
}

func (s *scripted) Follow(ctx context.Context, _ job.ID, wait bool) iter.Seq2[job.Event, error] {
	return func(yield func(job.Event, error) bool) {
		if s.denied != nil {
			yield(job.Event{}, s.denied)
			return
		}
		for i, e := range s.events {
			if i == len(s.events)-1 {
				pause.For(ctx, s.lastIn)
			}
			if !yield(e, nil) {
				return
			}
		}
		if wait && s.noFinish {
			<-ctx.Done()
		}
	}
}

func (s *scripted) Result(ctx context.Context, _ job.ID) (*job.Result, error) {
	if s.unknown {
		return nil, job.ErrNotFound
	}
	select {
	case <-time.After(s.resultIn):
		return s.result, nil
	case <-s.canceled:
		return &job.Result{Outcome: job.Canceled, Reason: job.ReasonCanceledByUser}, nil
	case <-ctx.Done():
		return nil, context.Cause(ctx)
	}
}

func (s *scripted) Status(ctx context.Context, _ job.ID) (job.Status, error) {
	if s.away.Load() {
		<-ctx.Done()
		return job.Status{}, fmt.Errorf("read: %w: no answer", job.ErrUnavailable)
	}
	return job.Status{State: s.state, Queue: "default", EligibleAt: time.Unix(0, 0)}, nil
}

func (s *scripted) Cancel(_ context.Context, _ job.ID, mode job.CancelMode) (job.State, error) {
	s.cancels = append(s.cancels, mode)
	if mode == job.Abort && s.canceled != nil {
		close(s.canceled)
	}
	return job.StateRunning, nil
}

func wholeJob() []job.Event {
	events := []job.Event{
		eventtest.New(1, job.EventClaimed, func(e *job.Event) { e.Text = "worker w1" }),
		eventtest.New(2, job.EventPhase, func(e *job.Event) { e.Text = "pull_image" }),
		eventtest.New(4, job.EventPhase, func(e *job.Event) { e.Text = "create" }),
		eventtest.New(5, job.EventPhase, func(e *job.Event) { e.Text = "steps" }),
		eventtest.New(6, job.EventStepStart, func(e *job.Event) { e.Name = "build" }),
		eventtest.Output(7, "stdout", "hel"),
		eventtest.Output(8, "stdout", "lo\n\x1b[31mred\x1b[0m\n"),
		eventtest.Output(9, "stderr", "warn"),
		eventtest.New(10, job.EventStepEnd, eventtest.ExitCode(7)),
		eventtest.New(11, job.EventPhase, func(e *job.Event) { e.Text = "push_workspace" }),
		eventtest.New(12, job.EventFinished, nil),
	}
	for i := range events {
		events[i].Seq = uint64(i) + 1 // what New was given is the time
	}
	return events
}

var failed = &job.Result{
	Outcome: job.Failed, Reason: job.ReasonExit, Message: "step build ended with exit code 7",
	Phases:      job.Phases{Queue: job.Duration(3 * time.Millisecond), Steps: job.Duration(2 * time.Second)},
	SubmittedAt: eventtest.At, FinishedAt: eventtest.At.Add(2500 * time.Millisecond), Attempt: 1, Relaxed: []string{"network_open"},
	Workspace: &job.WorkspaceResult{
		Prefix: "demo/quote", FilesPulled: 12, FilesPushed: 1, BytesPushed: 2048, FilesDeleted: 1,
		Changes: []job.Change{{Path: "a\x1b[2J.go", Kind: "added"}, {Path: "b.go", Kind: "deleted"}},
	},
}
