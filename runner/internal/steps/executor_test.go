package steps

import (
	"context"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"go.uber.org/goleak"
	"go.uber.org/zap"

	"slipway/container"
	"slipway/container/mock"
	"slipway/job"
	"slipway/runner/internal/verdict"
	"slipway/runner/loop"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// told records what a Loop tells.
type told struct {
	kinds   []job.EventKind
	events  []job.Event
	printed string
	retried int
	done    []job.StepStatus
}

func (n *told) Add(e job.Event)                                 { n.kinds, n.events = append(n.kinds, e.Kind), append(n.events, e) }
func (n *told) Output(_ int, _ string, p []byte)                { n.printed += string(p) }
func (n *told) StepDone(status job.StepStatus, _ time.Duration) { n.done = append(n.done, status) }
func (n *told) Missing(int, int64)                              {}
func (n *told) LogKept(int64, int64, string)                    {}
func (n *told) StepRetried()                                    { n.retried++ }

// onABox calls fn with the Config of a loop on a running box, in a bubble of fake time. There is no attempt around it.
func onABox(t *testing.T, fn func(*testing.T, *mock.Provider, Config, *told)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		p := mock.New(t)
		box, err := p.Create(t.Context(), container.Spec{Name: "slipway-x-1", Image: "i"})
		if err != nil {
			t.Fatal(err)
		}
		defer func() {
			if err := box.Remove(context.WithoutCancel(t.Context())); err != nil {
				t.Errorf("remove: %v", err)
			}
		}()
		if err := box.Start(t.Context()); err != nil {
			t.Fatal(err)
		}
		n := &told{}
		destroy := func(context.Context) { t.Error("the box was destroyed") }
		fn(t, p, Config{Box: box, Destroy: destroy, Events: n, Observer: n, Log: zap.NewNop(), Excerpt: 1 << 10}, n)
	})
}

// TestLoop_WithoutAnAttempt: a box, a decider and somebody who listens are all that a loop needs.
func TestLoop_WithoutAnAttempt(t *testing.T) {
	t.Parallel()
	onABox(t, func(t *testing.T, p *mock.Provider, cfg Config, n *told) {
		p.On("flaky", mock.Reply{Code: 1}, mock.Reply{Stdout: "ok\n"})
		l := New(cfg, loop.Script([]job.Step{
			{Run: "flaky", Retry: job.Retry{Attempts: 2}}, {Command: []string{"false"}}, {Run: "never"},
		}))
		v := l.Run(t.Context(), t.Context())
		l.Wait()
		results, elided := l.Results()
		if v.Reason != job.ReasonExit || v.Outcome != job.Failed || len(results) != 3 || elided != 0 || results[0].Tries != 2 {
			t.Errorf("got %+v, %d results of which the first had %d tries", v, len(results), results[0].Tries)
		}
		want := []job.StepStatus{job.StepSucceeded, job.StepFailed, job.StepSkipped}
		if !slices.Equal(n.done, want) || n.retried != 1 || n.printed != "ok\n" {
			t.Errorf("told of %v, %d retries, %q; want %v, 1 and ok", n.done, n.retried, n.printed, want)
		}
	})
}

// TestLoop_Hold: nothing goes on after the end of the hold, and what was not asked for is skipped.
func TestLoop_Hold(t *testing.T) {
	t.Parallel()
	onABox(t, func(t *testing.T, p *mock.Provider, cfg Config, n *told) {
		p.On("slow", mock.Reply{Hang: true})
		hold, drop := context.WithCancelCause(t.Context())
		time.AfterFunc(time.Minute, func() { drop(job.ErrLeaseLost) })
		l := New(cfg, loop.Script([]job.Step{{Run: "slow"}, {Run: "after", If: job.IfAlways}}))
		began := time.Now()
		v := l.Run(hold, hold)
		if v.Reason != job.ReasonLeaseLost || time.Since(began) != time.Minute {
			t.Errorf("got %+v after %s, want lease_lost after a minute", v, time.Since(began))
		}
		if want := []job.StepStatus{job.StepCanceled, job.StepSkipped}; !slices.Equal(n.done, want) {
			t.Errorf("got steps %v, want %v", n.done, want)
		}
	})
}

// TestLoop_EndingTime: what always runs has a clock of its own, which counts as the job's.
func TestLoop_EndingTime(t *testing.T) {
	t.Parallel()
	onABox(t, func(t *testing.T, p *mock.Provider, cfg Config, _ *told) {
		p.On("slow", mock.Reply{Hang: true})
		work, interrupt := context.WithCancelCause(t.Context())
		interrupt(verdict.ErrCanceled)
		l := New(cfg, loop.Script([]job.Step{{Run: "slow", If: job.IfAlways}, {Run: "slow", If: job.IfAlways}}))
		began := time.Now()
		v := l.Run(t.Context(), work)
		results, _ := l.Results()
		if v.Reason != job.ReasonCanceledByUser || time.Since(began) != EndingTime {
			t.Errorf("got %+v after %s, want the cancel after %s", v, time.Since(began), EndingTime)
		}
		if r := results[0]; r.Status != job.StepTimedOut || r.Reason != job.ReasonJobTimeout || results[1].Status != job.StepSkipped {
			t.Errorf("got %s/%s (%s), then %s", r.Status, r.Reason, r.Message, results[1].Status)
		}
	})
}
