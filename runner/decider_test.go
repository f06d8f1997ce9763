package runner

import (
	"bytes"
	"context"
	"errors"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"slipway/container"
	"slipway/job"
	"slipway/runner/loop"
)

// decide makes a Decider of a function, for every attempt.
func (b *bundle) decide(next func(loop.Turn) (loop.Decision, error)) {
	b.cfg.Decider = func(*job.Job) (loop.Decider, error) { return deciderFunc(next), nil }
}

type deciderFunc func(loop.Turn) (loop.Decision, error)

func (f deciderFunc) Next(_ context.Context, t loop.Turn) (loop.Decision, error) { return f(t) }

// do1 is the decision to run scripts, one after the other.
func do1(scripts ...string) (d loop.Decision) {
	for _, s := range scripts {
		d.Actions = append(d.Actions, loop.Action{Step: run(s)})
	}
	return d
}

var finish = loop.Decision{Finish: true}

// TestDecider_ToldOfWhatIsInvalid: a decision that can't be used is a failure of the decider, which is told and goes on.
func TestDecider_ToldOfWhatIsInvalid(t *testing.T) {
	t.Parallel()
	tests := []struct {
		name string
		d    loop.Decision
		want string
	}{
		{"said so itself", loop.Decision{Invalid: "no JSON"}, "no JSON"},
		{"nothing", loop.Decision{}, "names no action"},
		{"finish and go on", loop.Decision{Finish: true, Actions: do1("say a").Actions}, "finishes and names actions"},
		{"no step", loop.Decision{Actions: []loop.Action{{Step: run("say a")}, {}}}, "actions[1]: needs one of run"},
		{"two steps in one", loop.Decision{Actions: []loop.Action{{Step: job.Step{Run: "a", Read: "b"}}}}, "can't be used beside"},
		{"outside", loop.Decision{Actions: []loop.Action{{Step: job.Step{Read: "../x"}}}}, "read: "},
		{"root", loop.Decision{Actions: []loop.Action{{Step: job.Step{Run: "id", User: "0"}}}}, "root_steps"},
		{"too many", loop.Decision{Actions: make([]loop.Action, job.MaxSteps+1)}, "more than 200"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			scenario(t, func(b *bundle) {
				var told []string
				b.decide(func(turn loop.Turn) (loop.Decision, error) {
					told = append(told, turn.Invalid)
					switch turn.Number {
					case 0:
						return tt.d, nil
					case 1:
						if turn.Failed || len(turn.Last) != 0 {
							t.Errorf("got turn %+v, want nothing done", turn)
						}
						return do1("say b"), nil
					}
					return finish, nil
				})
				r := b.want(b.do(jobOf(run("x"))), job.Succeeded, "")
				if got := r.Steps; len(got) != 1 || got[0].Output.Head != "b\n" || got[0].Name != "1" {
					t.Errorf("got steps %+v, want the second decision's alone", got)
				}
				if len(told) != 3 || told[0] != "" || !strings.Contains(told[1], tt.want) || told[2] != "" {
					t.Errorf("told %q, want %q once", told, tt.want)
				}
			})
		})
	}
}

// TestDecider_TooManyInvalid: they end the job, whatever its budgets are, and only if they follow each other.
func TestDecider_TooManyInvalid(t *testing.T) {
	t.Parallel()
	scenario(t, func(b *bundle) {
		asked := 0
		b.decide(func(turn loop.Turn) (loop.Decision, error) {
			asked++
			if turn.Number == loop.MaxInvalid-1 {
				return do1("say a"), nil
			}
			return loop.Decision{Invalid: "gibberish"}, nil
		})
		j := jobOf(run("x"))
		j.Retry = job.Retry{Attempts: 3}
		r := b.want(b.do(j), job.Failed, job.ReasonLimitFailures)
		if want := 2 * loop.MaxInvalid; asked != want || !strings.Contains(r.Message, "gibberish") || len(r.Steps) != 1 {
			t.Errorf("asked %d times, want %d; message %q, %d steps", asked, want, r.Message, len(r.Steps))
		}
	})
}

// TestDecider_Errors: what is no answer is the infrastructure's failure, and a job that no decider fits is refused.
func TestDecider_Errors(t *testing.T) {
	t.Parallel()
	scenario(t, func(b *bundle) {
		b.decide(func(loop.Turn) (loop.Decision, error) { return loop.Decision{}, errors.New("the model is away") })
		l := b.do(jobOf(run("x")))
		b.wantRetry(l, job.ClassInfra, job.ReasonInternal)
		if !strings.Contains(l.failure.Message, "the model is away") {
			t.Errorf("got message %q", l.failure.Message)
		}
	})
	scenario(t, func(b *bundle) {
		b.cfg.Decider = func(j *job.Job) (loop.Decider, error) { return nil, errors.New("label model is missing") }
		r := b.want(b.do(jobOf(run("x"))), job.Errored, job.ReasonSpecInvalid)
		if !strings.Contains(r.Message, "label model is missing") || len(b.boxes.specs) != 0 {
			t.Errorf("got message %q and %d boxes", r.Message, len(b.boxes.specs))
		}
	})
	scenario(t, func(b *bundle) {
		b.decide(func(loop.Turn) (loop.Decision, error) { panic("broken") })
		b.wantRetry(b.do(jobOf(run("x"))), job.ClassInfra, job.ReasonInternal)
	})
}

// TestDecider_Turns: a decider is told what its actions came to, and of the end.
func TestDecider_Turns(t *testing.T) {
	t.Parallel()
	scenario(t, func(b *bundle) {
		var turns []loop.Turn
		b.decide(func(turn loop.Turn) (loop.Decision, error) {
			turns = append(turns, turn)
			switch turn.Number {
			case 0:
				return do1("say a", "exit 3"), nil
			case 1:
				return do1("sleep 1h", "say never"), nil
			case 2:
				return loop.Decision{Actions: []loop.Action{{Step: run("say z"), Skip: true}}}, nil
			}
			return finish, nil
		})
		j := jobOf(run("x"))
		j.Timeout = job.Duration(time.Minute)
		r := b.want(b.do(j), job.Failed, job.ReasonExit)
		if len(turns) != 4 || turns[0].Failed || !turns[1].Failed || turns[1].Ending || !turns[2].Ending {
			t.Fatalf("got turns %+v", turns)
		}
		if got := turns[1].Last; len(got) != 2 || got[0].Output.Head != "a\n" || *got[1].ExitCode != 3 {
			t.Errorf("got %+v after the first decision", got)
		}
		if got := turns[2].Last; len(got) != 1 || got[0].Status != job.StepTimedOut {
			t.Errorf("got %+v, want the step that the job's timeout ended, and none after it", got)
		}
		want := []job.StepStatus{stepOK, stepBad, stepOut, stepNo}
		if got := statuses(r); !slices.Equal(got, want) {
			t.Errorf("got steps %v, want %v", got, want)
		}
		for i, s := range r.Steps {
			if s.Index != i || s.Name != strconv.Itoa(i+1) {
				t.Errorf("step %d has the index %d and the name %q", i, s.Index, s.Name)
			}
		}
	})
}

// TestDecider_Observations: a decider is told more than a result has room for, or less.
func TestDecider_Observations(t *testing.T) {
	t.Parallel()
	for _, size := range []int{0, 8, 1 << 20} {
		scenario(t, func(b *bundle) {
			b.cfg.Excerpt, b.cfg.Observation = 16, size
			const printed = 100 << 10
			b.boxes.exec = func(_ context.Context, _ *fakeBox, cmd container.Command) (container.Exit, error) {
				cmd.Output(container.Stdout, bytes.Repeat([]byte("x"), printed))
				return container.Exit{Output: printed + 5}, nil
			}
			var seen job.Output
			b.decide(func(turn loop.Turn) (loop.Decision, error) {
				if turn.Number == 0 {
					return do1("print"), nil
				}
				seen = turn.Last[0].Output
				return finish, nil
			})
			r := b.want(b.do(jobOf(run("x"))), job.Succeeded, "")
			if size == 0 {
				size = DefaultObservation
			}
			if want := min(size, printed); len(seen.Head) != want || seen.Bytes != printed+5 {
				t.Errorf("told of %d bytes at the head and %d in all, want %d and %d", len(seen.Head), seen.Bytes, want, printed+5)
			}
			if o := r.Steps[0].Output; len(o.Head) != 16 || len(o.Tail) != 16 || o.LogKey == "" {
				t.Errorf("the result has %d and %d bytes, log %q; want 16 of each, and a log", len(o.Head), len(o.Tail), o.LogKey)
			}
		})
	}
}

// TestDecider_ManyTurns: a result keeps the first steps and the last ones, and fits into a message.
func TestDecider_ManyTurns(t *testing.T) {
	t.Parallel()
	scenario(t, func(b *bundle) {
		const turns = 300
		b.boxes.exec = func(_ context.Context, _ *fakeBox, cmd container.Command) (container.Exit, error) {
			cmd.Output(container.Stdout, bytes.Repeat([]byte{0, '<', 'x'}, 10<<10))
			return container.Exit{Output: 30 << 10}, nil
		}
		b.decide(func(turn loop.Turn) (loop.Decision, error) {
			if turn.Number == turns {
				return finish, nil
			}
			return do1("print"), nil
		})
		r := b.want(b.do(jobOf(run("x"))), job.Succeeded, "")
		if size := len(mustJSON(t, r)); size > 600<<10 || size < 400<<10 {
			t.Errorf("the result takes %d bytes, want about 512 KiB", size)
		}
		if n := len(r.Steps); n+r.StepsElided != turns || n < 20 || r.Steps[0].Index != 0 || r.Steps[n-1].Index != turns-1 {
			t.Errorf("got %d steps and %d elided, want %d in all, from the first to the last", n, r.StepsElided, turns)
		}
		gaps := 0
		for i, s := range r.Steps {
			if i > 0 && s.Index != r.Steps[i-1].Index+1 {
				gaps++
			}
			if s.Output.LogKey == "" {
				t.Errorf("step %d has no log", s.Index)
			}
		}
		if gaps != 1 || b.seen.get("step succeeded") != turns {
			t.Errorf("got %d gaps and %d steps counted; want 1 and %d", gaps, b.seen.get("step succeeded"), turns)
		}
	})
}

// TestDecider_OwnJob: what makes a decider gets a copy of the job; the attempt's own does not change under it.
func TestDecider_OwnJob(t *testing.T) {
	t.Parallel()
	scenario(t, func(b *bundle) {
		b.cfg.Decider = func(j *job.Job) (loop.Decider, error) {
			d := loop.Script(slices.Clone(j.Steps))
			j.Image, j.Timeout, j.Steps[0].Run = "changed", 1, "exit 1"
			return d, nil
		}
		r := b.want(b.do(jobOf(run("sleep 1s"))), job.Succeeded, "")
		if !strings.Contains(r.ImageDigest, "alpine") {
			t.Errorf("got the image %s", r.ImageDigest)
		}
	})
}

// TestDecider_Script: the script is a Decider as any other, and may be wrapped.
func TestDecider_Script(t *testing.T) {
	t.Parallel()
	scenario(t, func(b *bundle) {
		b.cfg.Decider = func(j *job.Job) (loop.Decider, error) { return loop.Script(j.Steps), nil }
		r := b.want(b.do(jobOf(run("exit 3"), run("say b"), always("say c"))), job.Failed, job.ReasonExit)
		if got, want := statuses(r), []job.StepStatus{stepBad, stepNo, stepOK}; !slices.Equal(got, want) {
			t.Errorf("got steps %v, want %v", got, want)
		}
	})
}
