package runner

import (
	"bytes"
	"context"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"slipway/job"
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

// TestEvents_OneBatchAtATime: a flush waits for the batch that is under way, so that events stay in order.
func TestEvents_OneBatchAtATime(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		slow := true
		e, l, _ := stream(t, func(context.Context) error {
			if slow {
				slow = false
				pass(time.Second)
			}
			return nil
		})
		e.add(job.Event{Kind: job.EventClaimed})
		pass(eventDelay + time.Millisecond)
		e.add(job.Event{Kind: job.EventPhase, Text: "steps"})
		e.flush(t.Context())
		if got, want := l.kinds(), []string{"claimed", "phase steps"}; !slices.Equal(got, want) {
			t.Errorf("got %v after the flush, want %v", got, want)
		}
		e.close()
	})
}

// TestEvents_DropIsToldInItsPlace: output after a gap does not join the output before it.
func TestEvents_DropIsToldInItsPlace(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		gate := make(chan struct{})
		e, l, _ := stream(t, func(context.Context) error { <-gate; return nil })
		e.output(0, "stdout", make([]byte, eventBatch))
		synctest.Wait() // the sender is at the gate
		for e.dropped == 0 {
			e.output(0, "stdout", make([]byte, eventPiece))
		}
		e.output(0, "stdout", []byte("x")) // fits again
		close(gate)
		e.close()
		kinds := l.kinds()
		if got, want := kinds[len(kinds)-2:], []string{"dropped", "output"}; !slices.Equal(got, want) || string(l.events[len(kinds)-1].Data) != "x" {
			t.Errorf("got %v at the end, want %v", got, want)
		}
	})
}

// TestEvents_HangingReader: a queue that takes no events holds the end of an attempt for a bounded time.
func TestEvents_HangingReader(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		e, _, _ := stream(t, hang)
		e.output(0, "stdout", []byte("x"))
		began := time.Now()
		e.flush(t.Context())
		if got := time.Since(began); got != eventTimeout {
			t.Errorf("took %s, want %s", got, eventTimeout)
		}
		e.close()
	})
}

// TestEvents_NoneWithoutTheLease: events of an attempt that lost its job would mix with those of its successor.
func TestEvents_NoneWithoutTheLease(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		ctx, drop := context.WithCancelCause(t.Context())
		l := newFakeLease(t, nil)
		e := startEvents(ctx, l, newObserved())
		drop(errSelfFenced)
		e.add(job.Event{Kind: job.EventPhase, Text: "steps"})
		e.close()
		if len(l.events) != 0 {
			t.Errorf("got %v, want no event", l.events)
		}
	})
}
