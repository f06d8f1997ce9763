package runner

import (
	"context"
	"errors"
	"testing"
	"time"

	"slipway/job"
	"slipway/runner/loop"
)

// waitingDecider takes a first step, waits in its second turn until it is interrupted, and fails in its last one.
type waitingDecider struct {
	first string
	turns *[]loop.Turn
}

func (d waitingDecider) Next(ctx context.Context, t loop.Turn) (loop.Decision, error) {
	*d.turns = append(*d.turns, t)
	if len(*d.turns) == 1 {
		return do1(d.first), nil
	}
	if t.Ending {
		return loop.Decision{}, errors.New("the model is away")
	}
	<-ctx.Done()
	return loop.Decision{}, context.Cause(ctx)
}

// TestDecider_EndedWhileItDecides: a cancel or the job's timeout during Next gives the decider its Ending turn, like one
// during a step. Its failure there changes nothing about how the job ended: another attempt would take as long again.
func TestDecider_EndedWhileItDecides(t *testing.T) {
	t.Parallel()
	tests := []struct {
		name   string
		first  string
		cancel bool
		want   job.Outcome
		reason job.Reason
	}{
		{"timeout", "say a", false, job.TimedOut, job.ReasonJobTimeout},
		{"cancel", "say a", true, job.Canceled, job.ReasonCanceledByUser},
		{"timeout after a failure", "exit 3", false, job.Failed, job.ReasonExit},
		{"cancel after a failure", "exit 3", true, job.Canceled, job.ReasonCanceledByUser},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			scenario(t, func(b *bundle) {
				var turns []loop.Turn
				d := waitingDecider{tt.first, &turns}
				b.cfg.Decider = func(*job.Job) (loop.Decider, error) { return d, nil }
				j := jobOf(run("x"))
				j.Timeout = job.Duration(time.Minute)
				b.start()
				l := b.put(j)
				pass(10 * time.Second)
				if tt.cancel {
					l.cancels <- job.Cancel
				}
				b.wait(l)
				b.want(l, tt.want, tt.reason)
				if len(turns) != 3 || turns[1].Ending || !turns[2].Ending {
					t.Errorf("got turns %+v, want the third one to be the ending", turns)
				}
			})
		})
	}
}

// TestDecider_KeepsItsActions: a decider may give the same actions to every attempt. Nothing is written into them.
func TestDecider_KeepsItsActions(t *testing.T) {
	t.Parallel()
	scenario(t, func(b *bundle) {
		shared := do1("say a")
		b.decide(func(turn loop.Turn) (loop.Decision, error) {
			if turn.Number > 0 {
				return finish, nil
			}
			return shared, nil
		})
		b.want(b.do(jobOf(run("x"))), job.Succeeded, "")
		if got := shared.Actions[0].Step; got.Timeout != 0 || got.If != "" || len(got.Shell) != 0 {
			t.Errorf("got the decider's step %+v, want it without the defaults that were filled", got)
		}
	})
}

// finishingDecider has nothing more to do once it is interrupted.
type finishingDecider struct{}

func (finishingDecider) Next(ctx context.Context, _ loop.Turn) (loop.Decision, error) {
	<-ctx.Done()
	return finish, nil
}

// TestDecider_FinishAfterTheEnd: a job that was canceled or ran out of time while its decider thought has not succeeded.
func TestDecider_FinishAfterTheEnd(t *testing.T) {
	t.Parallel()
	scenario(t, func(b *bundle) {
		b.cfg.Decider = func(*job.Job) (loop.Decider, error) { return finishingDecider{}, nil }
		b.want(b.do(jobOf(run("x"))), job.TimedOut, job.ReasonJobTimeout)
	})
	scenario(t, func(b *bundle) {
		b.cfg.Decider = func(*job.Job) (loop.Decider, error) { return finishingDecider{}, nil }
		b.start()
		l := b.put(jobOf(run("x")))
		pass(10 * time.Second)
		l.cancels <- job.Cancel
		b.wait(l)
		b.want(l, job.Canceled, job.ReasonCanceledByUser)
	})
}

// TestDecider_None: a Config.Decider that makes none and names no reason is refused before there is a box.
func TestDecider_None(t *testing.T) {
	t.Parallel()
	scenario(t, func(b *bundle) {
		b.cfg.Decider = func(*job.Job) (loop.Decider, error) { return nil, nil }
		b.want(b.do(jobOf(run("x"))), job.Errored, job.ReasonSpecInvalid)
		if len(b.boxes.specs) != 0 {
			t.Errorf("got %d boxes, want none", len(b.boxes.specs))
		}
	})
}
