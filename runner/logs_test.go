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
		if o.Truncated != 201 || len(b.store.Object(o.LogKey)) != 100 {
			t.Errorf("huge: got %+v and %d bytes, want 100 bytes and 201 truncated", o, len(b.store.Object(o.LogKey)))
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

func TestLog_StoreAway(t *testing.T) {
	t.Parallel()
	scenario(t, func(b *bundle) {
		b.cfg.Excerpt = 8
		b.store.Inject(wsynctest.Fault{Op: wsynctest.OpPut, Err: wsync.ErrUnavailable, Times: 9})
		r := b.want(b.do(jobOf(run("say "+strings.Repeat("x", 50)))), job.Succeeded, "")
		if r.Steps[0].Output.LogKey != "" {
			t.Error("got the key of a log that was not stored")
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
	})
}
