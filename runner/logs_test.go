package runner

import (
	"bytes"
	"context"
	"fmt"
	"strings"
	"testing"
	"time"

	"slipway/container"
	"slipway/job"
	"slipway/runner/internal/steps"
	wsync "slipway/sync"
	"slipway/sync/wsynctest"
)

func TestLog_StoredOnlyIfTheExcerptIsNotAll(t *testing.T) {
	t.Parallel()
	scenario(t, func(b *bundle) {
		b.cfg.Excerpt, b.cfg.StepLogLimit = 16, 100
		long, huge := strings.Repeat("0123456789", 5), strings.Repeat("0123456789", 30)
		j := jobOf(run("say short"), job.Step{Name: "Build It!", Run: "say " + long}, run("say "+huge+"; exit 1"))
		l := b.do(j)
		r := b.want(l, job.Failed, job.ReasonExit)
		if o := r.Steps[0].Output; o.LogKey != "" || o.Elided != 0 {
			t.Errorf("short: got %+v, want no log", o)
		}
		o := r.Steps[1].Output
		key := fmt.Sprintf("p/logs/default/%s/1-7/002-build-it.log", l.delivery.ID)
		if o.LogKey != key || o.Elided != 51-32 || o.Truncated != 0 {
			t.Errorf("long: got %+v, want the key %s", o, key)
		}
		if got := string(b.store.Object(key)); got != long+"\n" {
			t.Errorf("long: stored %q", got)
		}
		o = r.Steps[2].Output
		want := huge[:50] + "\n" + job.LogGap(201, 0) + huge[251:] + "\n"
		if got := string(b.store.Object(o.LogKey)); o.Truncated != 201 || o.TruncatedLines != 0 || o.TruncatedAt != 50 || got != want {
			t.Errorf("huge: got %+v and %q; want 201 bytes truncated at 50, and %q", o, got, want)
		}
		for _, e := range l.events {
			if e.Kind == job.EventStepEnd && e.Truncated != r.Steps[e.Step].Output.Truncated {
				t.Errorf("step %d: the event tells of %d bytes left out, the result of %d", e.Step, e.Truncated, r.Steps[e.Step].Output.Truncated)
			}
		}
	})
}

// TestLog_Exact: what was printed is kept or lost, to the byte: what the metrics say is what the objects in the store have.
func TestLog_Exact(t *testing.T) {
	t.Parallel()
	scenario(t, func(b *bundle) {
		b.cfg.Excerpt, b.cfg.StepLogLimit, b.cfg.JobLogLimit = 8, 60, 100
		flaky := job.Step{Run: "say " + strings.Repeat("f", 29) + "; exit 1", ContinueOnError: true, Retry: job.Retry{Attempts: 3}}
		j := jobOf(run("say short"), run("say "+strings.Repeat("0123456789", 9)), flaky, run("say "+strings.Repeat("y", 49)), run("say "+strings.Repeat("z", 49)))
		r := b.want(b.do(j), job.Succeeded, "")
		var kept, lost, printed int64
		for _, s := range r.Steps {
			o := s.Output
			printed += o.Bytes
			switch {
			case o.LogKey == "":
				kept, lost = kept+o.Bytes-o.Elided, lost+o.Elided
			case o.Truncated == 0:
				kept += int64(len(b.store.Object(o.LogKey)))
			default:
				kept += int64(len(b.store.Object(o.LogKey)) - len("\n"+job.LogGap(o.Truncated, o.TruncatedLines)))
				lost += o.Truncated
			}
		}
		const tries = 2 * 30 // of the third step, but for the last one
		printed += tries
		if b.seen.bytes[0] != printed || b.seen.kept != kept || b.seen.lost["limit"] != lost || b.seen.lost["try"] != tries || kept+lost+tries != printed {
			t.Errorf("printed %d, kept %d, lost %d and %d; the observer was told %d, %d and %v", printed, kept, lost, tries, b.seen.bytes[0], b.seen.kept, b.seen.lost)
		}
		if o := r.Steps[4].Output; o.LogKey != "" || !strings.Contains(o.NotStored, "limit for the logs of a job") {
			t.Errorf("the last step: got %+v, want no log, and that the job's limit is why", o)
		}
	})
}

// TestLog_NotStored: a log that is nowhere has a reason in the result, and its bytes are counted as lost.
func TestLog_NotStored(t *testing.T) {
	t.Parallel()
	for cause, tc := range map[string]struct {
		change func(*bundle)
		want   string
	}{
		"no_store": {func(b *bundle) { b.cfg.Store = nil }, "the worker has no store"},
		"store": {func(b *bundle) {
			b.store.Inject(wsynctest.Fault{Op: wsynctest.OpPut, Err: wsync.ErrUnavailable, Times: 9})
		}, "the store did not take it: " + wsync.ErrUnavailable.Error()},
	} {
		scenario(t, func(b *bundle) {
			b.cfg.Excerpt = 8
			tc.change(b)
			r := b.want(b.do(jobOf(run("say "+strings.Repeat("x", 50)))), job.Succeeded, "")
			if o := r.Steps[0].Output; o.LogKey != "" || o.NotStored != tc.want || o.Truncated != 0 {
				t.Errorf("%s: got %+v, want no log and %q", cause, o, tc.want)
			}
			if b.seen.kept != 16 || b.seen.lost[cause] != 35 {
				t.Errorf("%s: the observer was told %d and %v, want 16 kept and 35 lost", cause, b.seen.kept, b.seen.lost)
			}
		})
	}
}

// TestLog_DearInJSON: output that is short and takes more room in a result than it has there is stored, too.
func TestLog_DearInJSON(t *testing.T) {
	t.Parallel()
	scenario(t, func(b *bundle) {
		b.cfg.Excerpt = 16
		text := strings.Repeat("\x1b", 30)
		b.boxes.exec = func(_ context.Context, _ *fakeBox, cmd container.Command) (container.Exit, error) {
			cmd.Output(container.Stdout, []byte(text))
			return container.Exit{Output: int64(len(text))}, nil
		}
		r := b.want(b.do(jobOf(run("x"))), job.Succeeded, "")
		if o := r.Steps[0].Output; o.Elided == 0 || string(b.store.Object(o.LogKey)) != text {
			t.Errorf("got %+v and the log %q; want something left out, and all of it in the log", o, b.store.Object(o.LogKey))
		}
	})
}

func TestLog_AfterJobTimeout(t *testing.T) {
	t.Parallel()
	scenario(t, func(b *bundle) {
		b.cfg.Excerpt = 8
		j := jobOf(run("say " + strings.Repeat("x", 50) + "; sleep 1h"))
		j.Timeout = job.Duration(time.Minute)
		if r := b.want(b.do(j), job.TimedOut, job.ReasonJobTimeout); r.Steps[0].Output.LogKey == "" {
			t.Error("the log of the step that ran out of time is not stored")
		}
	})
}

// TestLog_BesideTheNextStep: the upload of a log holds up no step, and the result waits for it.
func TestLog_BesideTheNextStep(t *testing.T) {
	t.Parallel()
	scenario(t, func(b *bundle) {
		b.cfg.Excerpt = 8
		b.store.Inject(wsynctest.Fault{Op: wsynctest.OpPut, Delay: time.Minute})
		r := b.want(b.do(jobOf(run("say "+strings.Repeat("x", 50)), run("sleep 40s"))), job.Succeeded, "")
		if got := r.FinishedAt.Sub(r.StartedAt); got != time.Minute || r.Steps[0].Output.LogKey == "" {
			t.Errorf("took %s, the log's key is %q; want the upload's minute beside the second step, and a key", got, r.Steps[0].Output.LogKey)
		}
	})
}

// TestLog_Bounded: a store that does not answer holds a job for steps.LogTimeout, once.
func TestLog_Bounded(t *testing.T) {
	t.Parallel()
	scenario(t, func(b *bundle) {
		b.cfg.Excerpt = 8
		b.store.Inject(wsynctest.Fault{Op: wsynctest.OpPut, Delay: 24 * time.Hour, Times: 2})
		loud := run("say " + strings.Repeat("x", 50))
		r := b.want(b.do(jobOf(loud, loud)), job.Succeeded, "")
		if got := r.FinishedAt.Sub(r.StartedAt); got != steps.LogTimeout {
			t.Errorf("took %s, want %s", got, steps.LogTimeout)
		}
	})
}

// TestResultFits: 200 steps that each print what is dear in JSON still make a result of less than a message.
func TestResultFits(t *testing.T) {
	t.Parallel()
	scenario(t, func(b *bundle) {
		b.cfg.Store = nil
		b.boxes.exec = func(_ context.Context, _ *fakeBox, cmd container.Command) (container.Exit, error) {
			cmd.Output(container.Stdout, bytes.Repeat([]byte{0, '<', 0xff}, 10<<10))
			return container.Exit{Code: 127, Error: strings.Repeat("e", 4<<10)}, nil
		}
		var j job.Job
		for range job.MaxSteps {
			j.Steps = append(j.Steps, job.Step{Run: "x", ContinueOnError: true})
		}
		r := b.want(b.do(&j), job.Succeeded, "")
		if len(r.Steps) != job.MaxSteps || r.StepsElided != 0 {
			t.Errorf("got %d steps and %d elided, want all steps of the script", len(r.Steps), r.StepsElided)
		}
		data := mustJSON(t, r)
		if len(data) > 900<<10 {
			t.Errorf("the result takes %d bytes, want less than a message's 1 MiB", len(data))
		}
	})
}

// TestOutput_AsTheBoxCounted: bytes that the box counted and nobody received are elided, not forgotten.
func TestOutput_AsTheBoxCounted(t *testing.T) {
	t.Parallel()
	scenario(t, func(b *bundle) {
		b.boxes.exec = func(_ context.Context, _ *fakeBox, cmd container.Command) (container.Exit, error) {
			cmd.Output(container.Stdout, []byte("hello"))
			return container.Exit{Output: 1005}, nil
		}
		r := b.want(b.do(jobOf(run("x"))), job.Succeeded, "")
		if o := r.Steps[0].Output; o.Bytes != 1005 || o.Elided != 1000 || o.Head != "hello" {
			t.Errorf("got %+v, want 1005 bytes of which 1000 are elided", o)
		}
		if b.seen.bytes != [2]int64{1005, 1000} || b.seen.kept != 5 || b.seen.lost["box"] != 1000 {
			t.Errorf("the observer was told %v, %d and %v; want 1005 printed, 1000 of them lost on the way", b.seen.bytes, b.seen.kept, b.seen.lost)
		}
	})
}
