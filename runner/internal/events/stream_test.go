package events

import (
	"bytes"
	"context"
	"errors"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"slipway/job"
	"slipway/runner/internal/verdict"
)

// reader is where a stream ends.
type reader struct {
	emit func(context.Context) error // nil: takes everything

	mu     sync.Mutex
	calls  int
	most   int // events in the largest batch
	events []job.Event
	bytes  [2]int64 // printed, missed
	why    string   // of the last ones that are missed
}

func (r *reader) sink() Sink {
	return Sink{
		Emit: func(ctx context.Context, batch []job.Event) error {
			if r.emit != nil {
				if err := r.emit(ctx); err != nil {
					return err
				}
			}
			r.mu.Lock()
			defer r.mu.Unlock()
			r.calls++
			r.most = max(r.most, len(batch))
			r.events = append(r.events, batch...)
			return nil
		},
		Printed: func(n int64) { r.bytes[0] += n },
		Missed:  func(n int64, why string) { r.bytes[1] += n; r.why = why },
	}
}

// kinds lists the events in short, and fails the test if their numbers have a gap.
func (r *reader) kinds(t *testing.T) []string {
	t.Helper()
	var kinds []string
	for i, e := range r.events {
		if e.Seq != uint64(i+1) {
			t.Errorf("event %d has the number %d", i+1, e.Seq)
		}
		kinds = append(kinds, string(e.Kind))
	}
	return kinds
}

// stream starts a stream whose Emit calls emit first.
func stream(t *testing.T, emit func(context.Context) error) (*Stream, *reader) {
	r := &reader{emit: emit}
	return Start(t.Context(), r.sink()), r
}

func hang(ctx context.Context) error {
	<-ctx.Done()
	return ctx.Err()
}

func TestStream_Batches(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		e, r := stream(t, nil)
		for range 1000 {
			e.Output(0, "stdout", []byte("x"))
		}
		e.Output(0, "stderr", []byte("y"))
		e.Output(0, "stdout", []byte("z"))
		<-time.After(batchDelay + time.Millisecond)
		synctest.Wait()
		if r.calls != 1 || len(r.events) != 3 {
			t.Errorf("got %d calls, %d events; want 1 call with 3 events", r.calls, len(r.events))
		}
		e.Close()
		if r.bytes != [2]int64{1002, 0} {
			t.Errorf("got %v bytes printed and dropped, want 1002 and 0", r.bytes)
		}
	})
}

func TestStream_FullBatchGoesAtOnce(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		e, r := stream(t, nil)
		e.Output(0, "stdout", make([]byte, batchSize))
		synctest.Wait()
		if len(r.events) == 0 {
			t.Error("a full batch waits")
		}
		e.Close()
	})
}

// TestStream_SlowReader: what adds never waits, memory is bounded, and what was dropped is told and counted.
func TestStream_SlowReader(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		gate := make(chan struct{})
		e, r := stream(t, func(context.Context) error { <-gate; return nil })
		piece := bytes.Repeat([]byte("x"), 10<<10)
		const n = 1000
		for range n {
			e.Output(0, "stdout", piece)
		}
		synctest.Wait()
		if e.weight > queueSize+eventWeight {
			t.Errorf("%d bytes wait, want at most %d", e.weight, queueSize)
		}
		close(gate)
		e.Add(job.Event{Kind: job.EventStepEnd})
		e.Close()
		var sent, told int64
		for _, ev := range r.events {
			sent += int64(len(ev.Data))
			if ev.Kind == job.EventDropped {
				told += ev.Bytes
			}
		}
		if want := int64(n * len(piece)); sent+told != want || told == 0 || r.bytes != [2]int64{want, told} {
			t.Errorf("sent %d, told of %d dropped, counted %v; want %d in all", sent, told, r.bytes, want)
		}
		kinds := r.kinds(t)
		if got := kinds[len(kinds)-2:]; !slices.Equal(got, []string{"dropped", "step_end"}) {
			t.Errorf("got %v at the end, want dropped before step_end", got)
		}
	})
}

func TestStream_ReaderGone(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		e, r := stream(t, func(context.Context) error { return errors.New("odd") })
		e.Output(0, "stdout", []byte("hello"))
		e.Close()
		if r.bytes != [2]int64{5, 5} || r.why != MissedQueue {
			t.Errorf("got %v (%s), want 5 printed and 5 missed since the queue did not take them", r.bytes, r.why)
		}
	})
}

// TestStream_Copies: a box's buffer is used again while its events wait.
func TestStream_Copies(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		e, r := stream(t, nil)
		p := []byte("ab")
		e.Output(0, "stdout", p[:1])
		e.Output(0, "stdout", p[1:])
		copy(p, "xy")
		e.Close()
		if len(r.events) != 1 || string(r.events[0].Data) != "ab" {
			t.Errorf("got %v, want one event with ab", r.events)
		}
	})
}

// TestStream_OneBatchAtATime: a flush waits for the batch that is under way, so that events stay in order.
func TestStream_OneBatchAtATime(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		slow := true
		e, r := stream(t, func(context.Context) error {
			if slow {
				slow = false
				<-time.After(time.Second)
			}
			return nil
		})
		e.Add(job.Event{Kind: job.EventClaimed})
		<-time.After(batchDelay + time.Millisecond)
		e.Add(job.Event{Kind: job.EventPhase, Text: "steps"})
		e.Flush(t.Context())
		if got, want := r.kinds(t), []string{"claimed", "phase"}; !slices.Equal(got, want) {
			t.Errorf("got %v after the flush, want %v", got, want)
		}
		e.Close()
	})
}

// TestStream_DropIsToldInItsPlace: output after a gap does not join the output before it.
func TestStream_DropIsToldInItsPlace(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		gate := make(chan struct{})
		e, r := stream(t, func(context.Context) error { <-gate; return nil })
		e.Output(0, "stdout", make([]byte, batchSize))
		synctest.Wait() // the sender is at the gate
		for e.gap.bytes == 0 {
			e.Output(0, "stdout", make([]byte, pieceSize/3))
		}
		e.Output(0, "stdout", []byte("x")) // fits again, also into the last event
		close(gate)
		e.Close()
		kinds := r.kinds(t)
		if got, want := kinds[len(kinds)-2:], []string{"dropped", "output"}; !slices.Equal(got, want) || string(r.events[len(kinds)-1].Data) != "x" {
			t.Errorf("got %v at the end, want %v", got, want)
		}
	})
}

// TestStream_GapIsToldOnce: what waits is bounded by what it weighs, empty events included, and a gap at the very end is told
// once.
func TestStream_GapIsToldOnce(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		gate := make(chan struct{})
		e, r := stream(t, func(context.Context) error { <-gate; return nil })
		e.Add(job.Event{Kind: job.EventClaimed})
		<-time.After(2 * batchDelay)
		synctest.Wait() // the sender is at the gate
		for range queueSize / eventWeight {
			e.Add(job.Event{Kind: job.EventPhase})
		}
		if e.weight != queueSize {
			t.Errorf("%d bytes wait, want %d", e.weight, queueSize)
		}
		e.Output(0, "stdout", []byte("lost"))
		close(gate)
		e.Flush(t.Context())
		e.Flush(t.Context())
		e.Close()
		var told []int64
		for _, ev := range r.events {
			if ev.Kind == job.EventDropped {
				told = append(told, ev.Bytes)
			}
		}
		if !slices.Equal(told, []int64{4}) {
			t.Errorf("told of gaps of %v bytes, want one of 4", told)
		}
		if most := batchSize / eventWeight; r.most > most {
			t.Errorf("a batch has %d events, want at most %d", r.most, most)
		}
	})
}

// TestStream_Pieces: an event holds at most one piece, however the output came.
func TestStream_Pieces(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		e, r := stream(t, nil)
		for range 5 {
			e.Output(0, "stdout", make([]byte, pieceSize-1))
		}
		e.Close()
		for i, ev := range r.events {
			if len(ev.Data) > pieceSize {
				t.Errorf("event %d has %d bytes, want at most %d", i, len(ev.Data), pieceSize)
			}
		}
	})
}

// TestStream_SteadyOutput: a queue that takes longer for a batch than a step for its next line loses nothing.
func TestStream_SteadyOutput(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		e, r := stream(t, func(ctx context.Context) error { return pause(ctx, 50*time.Millisecond) })
		const n = 3000
		for range n {
			e.Output(0, "stdout", []byte("line\n"))
			<-time.After(10 * time.Millisecond)
		}
		e.Close()
		if want := [2]int64{5 * n, 0}; r.bytes != want {
			t.Errorf("got %v bytes printed and missed, want %v", r.bytes, want)
		}
	})
}

func pause(ctx context.Context, d time.Duration) error {
	select {
	case <-time.After(d):
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

// TestStream_HangingReader: a queue that takes no events holds the end of an attempt for a bounded time.
func TestStream_HangingReader(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		e, _ := stream(t, hang)
		e.Output(0, "stdout", []byte("x"))
		began := time.Now()
		e.Flush(t.Context())
		if got := time.Since(began); got != sendTimeout {
			t.Errorf("took %s, want %s", got, sendTimeout)
		}
		e.Close()
	})
}

// TestStream_NoneWithoutTheLease: events of an attempt that lost its job would mix with those of its successor.
func TestStream_NoneWithoutTheLease(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		ctx, drop := context.WithCancelCause(t.Context())
		r := &reader{}
		e := Start(ctx, r.sink())
		drop(verdict.ErrSelfFenced)
		e.Add(job.Event{Kind: job.EventPhase, Text: "steps"})
		e.Close()
		if len(r.events) != 0 {
			t.Errorf("got %v, want no event", r.events)
		}
	})
}
