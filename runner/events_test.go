package runner

import (
	"bytes"
	"context"
	"fmt"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"slipway/container"
	"slipway/job"
	wsync "slipway/sync"
	"slipway/sync/wsynctest"
)

func TestEvents_Order(t *testing.T) {
	t.Parallel()
	scenario(t, func(b *bundle) {
		j := &job.Job{
			Workspace: &job.Workspace{Prefix: "ws"},
			Steps:     []job.Step{run("say a; touch f"), {Run: "say b", If: job.IfFailure}},
		}
		l := b.do(j)
		want := []string{
			"claimed", "phase pull_image", "phase create", "phase pull_workspace", "phase steps",
			"step_start", "output", "step_end", "step_end", "phase push_workspace",
		}
		if got := l.kinds(); !slices.Equal(got, want) {
			t.Errorf("got  %v\nwant %v", got, want)
		}
		for _, phase := range []string{"pull_image", "create", "pull_workspace", "steps", "push_workspace", "cleanup"} {
			if b.seen.get("phase "+phase) != 1 {
				t.Errorf("phase %s was observed %d times, want once", phase, b.seen.get("phase "+phase))
			}
		}
	})
}

func TestEvents_Retry(t *testing.T) {
	t.Parallel()
	scenario(t, func(b *bundle) {
		l := b.do(steps(run("lost")))
		b.wantRetry(l, job.ClassInfra, job.ReasonBoxLost)
		kinds := l.kinds()
		if last := kinds[len(kinds)-1]; last != "retry" {
			t.Errorf("got the last event %q, want retry", last)
		}
		e := l.events[len(l.events)-1]
		if wait := e.NotBefore.Sub(e.Time); e.Class != job.ClassInfra || e.Left != DefaultInfraBudget || wait != l.delay || wait <= 0 {
			t.Errorf("got class %s, %d left, next in %s; want infra, %d and %s", e.Class, e.Left, wait, DefaultInfraBudget, l.delay)
		}
	})
}

// stream makes an events whose Emit is emit.
func stream(t *testing.T, emit func(context.Context) error) (*events, *fakeLease, *observed) {
	l, seen := newFakeLease(t, nil), newObserved()
	l.emit = emit
	return startEvents(t.Context(), l, seen), l, seen
}

func TestEvents_Batches(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		calls := 0
		e, l, seen := stream(t, func(context.Context) error { calls++; return nil })
		for range 1000 {
			e.output(0, "stdout", []byte("x"))
		}
		e.output(0, "stderr", []byte("y"))
		e.output(0, "stdout", []byte("z"))
		pass(eventDelay + time.Millisecond)
		synctest.Wait()
		if calls != 1 || len(l.events) != 3 {
			t.Errorf("got %d calls, %d events; want 1 call with 3 events", calls, len(l.events))
		}
		e.close()
		if seen.bytes != [2]int64{1002, 0} {
			t.Errorf("got %v bytes printed and dropped, want 1002 and 0", seen.bytes)
		}
	})
}

func TestEvents_FullBatchGoesAtOnce(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		e, l, _ := stream(t, nil)
		e.output(0, "stdout", make([]byte, eventBatch))
		synctest.Wait()
		if len(l.events) == 0 {
			t.Error("a full batch waits")
		}
		e.close()
	})
}

// TestEvents_SlowReader: what adds never waits, memory is bounded, and what was dropped is told and counted.
func TestEvents_SlowReader(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		gate := make(chan struct{})
		e, l, seen := stream(t, func(context.Context) error { <-gate; return nil })
		piece := bytes.Repeat([]byte("x"), 10<<10)
		const n = 1000
		for range n {
			e.output(0, "stdout", piece)
		}
		synctest.Wait()
		if e.weight > eventQueue+eventWeight {
			t.Errorf("%d bytes wait, want at most %d", e.weight, eventQueue)
		}
		close(gate)
		e.add(job.Event{Kind: job.EventStepEnd})
		e.close()
		var sent, told int64
		for _, ev := range l.events {
			sent += int64(len(ev.Data))
			if ev.Kind == job.EventDropped {
				told += ev.Bytes
			}
		}
		if want := int64(n * len(piece)); sent+told != want || told == 0 || seen.bytes != [2]int64{want, told} {
			t.Errorf("sent %d, told of %d dropped, counted %v; want %d in all", sent, told, seen.bytes, want)
		}
		kinds := l.kinds()
		if got := kinds[len(kinds)-2:]; !slices.Equal(got, []string{"dropped", "step_end"}) {
			t.Errorf("got %v at the end, want dropped before step_end", got)
		}
	})
}

func TestEvents_ReaderGone(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		e, _, seen := stream(t, func(context.Context) error { return job.ErrUnavailable })
		e.output(0, "stdout", []byte("hello"))
		e.close()
		if seen.bytes != [2]int64{5, 5} {
			t.Errorf("got %v, want 5 printed and 5 dropped", seen.bytes)
		}
	})
}

func TestLog_StoredOnlyIfTheExcerptIsNotAll(t *testing.T) {
	t.Parallel()
	scenario(t, func(b *bundle) {
		b.cfg.Excerpt, b.cfg.StepLogLimit = 16, 100
		long, huge := strings.Repeat("0123456789", 5), strings.Repeat("0123456789", 30)
		j := steps(run("say short"), job.Step{Name: "Build It!", Run: "say " + long}, run("say "+huge+"; exit 1"))
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
		j := steps(run("say " + strings.Repeat("x", 50) + "; sleep 1h"))
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
		r := b.want(b.do(steps(run("say "+strings.Repeat("x", 50)))), job.Succeeded, "")
		if r.Steps[0].Output.LogKey != "" {
			t.Error("got the key of a log that was not stored")
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
		data := mustJSON(t, r)
		if len(data) > 900<<10 {
			t.Errorf("the result takes %d bytes, want less than a message's 1 MiB", len(data))
		}
	})
}
