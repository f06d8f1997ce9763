package joblog

import (
	"context"
	"errors"
	"fmt"
	"io"
	"math"
	"strings"
	"testing"
	"time"

	"slipway/cmd/internal/display"
	"slipway/job"
	"slipway/job/jobtest"
	wsync "slipway/sync"
	"slipway/sync/wsynctest"
)

// bundle is a queue in memory with one job, and a store.
type bundle struct {
	t     *testing.T
	queue *jobtest.Queue
	store *wsynctest.Store
	id    job.ID
	lease job.Lease
	sink  recorder
}

// recorder is a Sink.
type recorder struct {
	events []job.Event
	notes  []string
}

func (r *recorder) Event(e job.Event) { r.events = append(r.events, e) }
func (r *recorder) Note(format string, args ...any) {
	r.notes = append(r.notes, fmt.Sprintf(format, args...))
}

// text is the events as a line: the output as it is, everything else in brackets.
func (r *recorder) text() string {
	var b strings.Builder
	for _, e := range r.events {
		switch e.Kind {
		case job.EventOutput:
			b.Write(e.Data)
		case job.EventStepStart, job.EventStepEnd:
			fmt.Fprintf(&b, "[%s %d]", e.Kind, e.Step)
		case job.EventDropped:
			fmt.Fprintf(&b, "[dropped %d,%d]", e.Bytes, e.Lines)
		default:
			fmt.Fprintf(&b, "[%s]", e.Kind)
		}
	}
	return b.String()
}

func setup(t *testing.T) *bundle {
	b := &bundle{t: t, queue: jobtest.NewQueue(jobtest.Config{}), store: wsynctest.NewStore()}
	j := &job.Job{ID: job.NewID(), Image: "busybox", Steps: []job.Step{{Run: "true"}}}
	if err := b.queue.Submit(t.Context(), j); err != nil {
		t.Fatal(err)
	}
	b.id = j.ID
	return b
}

// claim lets a worker take the job.
func (b *bundle) claim() {
	b.t.Helper()
	l, err := b.queue.Consumer("w1").Next(b.t.Context())
	if err != nil {
		b.t.Fatal(err)
	}
	b.lease = l
	b.emit(job.Event{Kind: job.EventClaimed})
}

func (b *bundle) emit(events ...job.Event) {
	b.t.Helper()
	if err := b.lease.Emit(b.t.Context(), events); err != nil {
		b.t.Fatal(err)
	}
}

// step emits the events of a step that prints pieces.
func (b *bundle) step(index int, name string, pieces ...string) {
	b.emit(job.Event{Kind: job.EventStepStart, Step: index, Name: name})
	for _, p := range pieces {
		b.emit(job.Event{Kind: job.EventOutput, Step: index, Stream: "stdout", Data: []byte(p)})
	}
	b.emit(job.Event{Kind: job.EventStepEnd, Step: index, Name: name, Status: job.StepSucceeded})
}

// commit ends the job with steps.
func (b *bundle) commit(steps ...job.StepResult) {
	b.t.Helper()
	r := &job.Result{Outcome: job.Succeeded, Steps: steps, StartedAt: time.Now(), Store: "s3://b at http://s"}
	for i := range r.Steps {
		r.Steps[i].Index, r.Steps[i].Status = i, job.StepSucceeded
	}
	if _, err := b.lease.Commit(b.t.Context(), r); err != nil {
		b.t.Fatal(err)
	}
}

func (b *bundle) object(key, content string) {
	b.t.Helper()
	if _, err := b.store.Put(b.t.Context(), key, strings.NewReader(content), int64(len(content)), wsync.PutOptions{}); err != nil {
		b.t.Fatal(err)
	}
}

// show runs Show. change changes the source.
func (b *bundle) show(change func(*Source)) Report {
	b.t.Helper()
	r, err := b.try(change)
	if err != nil {
		b.t.Fatalf("Show: %v", err)
	}
	return r
}

func (b *bundle) try(change func(*Source)) (Report, error) {
	b.t.Helper()
	st, err := b.queue.Status(b.t.Context(), b.id)
	if err != nil {
		b.t.Fatal(err)
	}
	src := Source{Client: b.queue, Status: st, Store: func() (Store, error) { return b.store, nil }}
	if change != nil {
		change(&src)
	}
	b.sink = recorder{}
	return Show(b.t.Context(), src, &b.sink)
}

// want checks what the last show gave.
func (b *bundle) want(r Report, text string, complete bool, notes ...string) {
	b.t.Helper()
	if got := b.sink.text(); got != text {
		b.t.Errorf("got  %q\nwant %q", got, text)
	}
	if r.Complete != complete {
		b.t.Errorf("got complete %t, want %t", r.Complete, complete)
	}
	all := strings.Join(b.sink.notes, "\n")
	for _, n := range notes {
		if !strings.Contains(all, n) {
			b.t.Errorf("the notes lack %q:\n%s", n, all)
		}
	}
	if len(notes) == 0 && all != "" {
		b.t.Errorf("got notes, want none:\n%s", all)
	}
}

func noStore(s *Source) { s.Store = nil }

// TestShow_Events: while the queue has all events, they are shown as they are, and nothing else is asked for.
func TestShow_Events(t *testing.T) {
	t.Parallel()
	b := setup(t)
	b.claim()
	b.step(0, "one", "hello\n", "world\n")
	b.commit(job.StepResult{Name: "one", Output: job.Output{Head: "he", Elided: 9, Tail: "\n", Bytes: 12, LogKey: "never read"}})
	b.want(b.show(nil), "[claimed][step_start 0]hello\nworld\n[step_end 0][finished]", true)
}

// TestShow_Evicted: however many of the events are gone, the output is all there if the store and the result have it, each
// step once and in order.
func TestShow_Evicted(t *testing.T) {
	t.Parallel()
	b := setup(t)
	b.claim()
	b.step(0, "one", "a\n", "b\n")
	b.step(1, "two", "long ", "output\n")
	b.step(2, "three", "c\n")
	b.object("k", "long output\n")
	b.commit(
		job.StepResult{Name: "one", Output: job.Output{Head: "a\nb\n", Bytes: 4}},
		job.StepResult{Name: "two", Output: job.Output{Head: "lo", Elided: 8, Tail: "t\n", Bytes: 12, LogKey: "k"}},
		job.StepResult{Name: "three", Output: job.Output{Head: "c\n", Bytes: 2}},
	)
	const want = "[step_start 0]a\nb\n[step_end 0][step_start 1]long output\n[step_end 1][step_start 2]c\n[step_end 2][finished]"
	b.want(b.show(nil), "[claimed]"+want, true)
	b.queue.Evict(b.id, 1)
	b.want(b.show(nil), want, true) // the claim is no output
	for range 11 {                  // of 13 events; the last one is made anew
		b.queue.Evict(b.id, 1)
		b.want(b.show(nil), want, true, "events are missing")
	}
	b.queue.Evict(b.id, math.MaxInt)
	b.want(b.show(nil), want, true, "events are missing")
}

// TestShow_Gap: a log with a gap is shown with the gap in its place, also one that is cut within a line; that is not all.
func TestShow_Gap(t *testing.T) {
	t.Parallel()
	for _, head := range []string{"head\n", "cut"} {
		b := setup(t)
		b.claim()
		gap := job.LogGap(1000, 7)
		if head == "cut" {
			gap = "\n" + gap
		}
		b.object("k", head+gap+"tail\n")
		b.commit(job.StepResult{Name: "one", Output: job.Output{
			Head: "h", Elided: 1007, Tail: "\n", Bytes: 1008, LogKey: "k", Truncated: 1000, TruncatedLines: 7, TruncatedAt: int64(len(head)),
		}})
		b.queue.Evict(b.id, math.MaxInt)
		b.want(b.show(nil), "[step_start 0]"+head+"[dropped 1000,7]tail\n[step_end 0][finished]", false, "1000 B of its output are kept nowhere: it went over the worker's limit")
	}
}

// TestShow_NoStore: without the store the result's head and tail are shown, and where the rest is, and how to read it.
func TestShow_NoStore(t *testing.T) {
	t.Parallel()
	b := setup(t)
	b.claim()
	b.commit(
		job.StepResult{Name: "one", Output: job.Output{Head: "head\n", Elided: 3000, Tail: "tail\n", Bytes: 3010, LogKey: "logs/k"}},
		job.StepResult{Name: "two", Output: job.Output{Head: "x", Elided: 5, Tail: "y", Bytes: 7, NotStored: "the worker has no store"}},
	)
	b.queue.Evict(b.id, math.MaxInt)
	const want = "[step_start 0]head\n[dropped 3000,0]tail\n[step_end 0][step_start 1]x[dropped 5,0]y[step_end 1][finished]"
	b.want(b.show(noStore), want, false,
		"step 1: one: 2.9 KiB of its output are not shown", "object logs/k in s3://b at http://s", "SLIPWAY_S3_BUCKET", "step 2: two: 5 B of its output are not shown: they are kept nowhere: the worker has no store")

	refused := func(s *Source) { s.Store = func() (Store, error) { return nil, errors.New("odd key") } }
	b.want(b.show(refused), want, false, "the store can't be read: odd key", "object logs/k")
	b.want(b.show(nil), want, false, "its log can't be read: ", "object logs/k") // it is not there
}

// TestShow_BestOfTheRest: without the store, events with more than the result has are shown, with their gaps.
func TestShow_BestOfTheRest(t *testing.T) {
	t.Parallel()
	b := setup(t)
	b.claim()
	b.emit(job.Event{Kind: job.EventStepStart, Name: "one"}, job.Event{Kind: job.EventOutput, Data: []byte("much of it\n")},
		job.Event{Kind: job.EventDropped, Bytes: 100, Lines: 3, Text: "why"}, job.Event{Kind: job.EventOutput, Data: []byte("end\n")},
		job.Event{Kind: job.EventStepEnd, Name: "one", Status: job.StepSucceeded})
	b.commit(job.StepResult{Name: "one", Output: job.Output{Head: "m", Elided: 113, Tail: "\n", Bytes: 115, LogKey: "k"}})
	b.want(b.show(noStore), "[claimed][step_start 0]much of it\n[dropped 100,3]end\n[step_end 0][finished]", false, "15 B of its output are shown; its last try printed 115 B; its log is", "object k")
	b.object("k", "all of it\n")
	b.want(b.show(nil), "[claimed][step_start 0]all of it\n[step_end 0][finished]", true, "events are missing")
}

// TestShow_EventsBreakOff: events end before the step did when a server goes away. The result has the end.
func TestShow_EventsBreakOff(t *testing.T) {
	t.Parallel()
	const first, common = "much of it\n", "a line that both of them have\n"
	for _, tt := range []struct {
		name, tail, want string
		bytes            int64
		complete         bool
	}{
		{"joined", common + "the end\n", first + common + "the end\n", int64(len(first + common + "the end\n")), true},
		{"all there", common, first + common, int64(len(first + common)), true},
		{"a gap", "the end\n", first + common + "[dropped 5,0]the end\n", int64(len(first+common+"the end\n") + 5), false},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			b := setup(t)
			b.claim()
			b.emit(job.Event{Kind: job.EventStepStart, Name: "one"}, job.Event{Kind: job.EventOutput, Data: []byte(first)},
				job.Event{Kind: job.EventOutput, Data: []byte(common)})
			b.commit(job.StepResult{Name: "one", Output: job.Output{Head: "m", Elided: tt.bytes - 1 - int64(len(tt.tail)), Tail: tt.tail, Bytes: tt.bytes}})
			b.want(b.show(noStore), "[claimed][step_start 0]"+tt.want+"[step_end 0][finished]", tt.complete, "events are missing")
		})
	}
}

// TestShow_Tail: what is missing before the lines that were asked for is not missed.
func TestShow_Tail(t *testing.T) {
	t.Parallel()
	b := setup(t)
	b.claim()
	b.emit(job.Event{Kind: job.EventStepStart, Name: "one"}, job.Event{Kind: job.EventOutput, Data: []byte("a\n")},
		job.Event{Kind: job.EventDropped, Bytes: 100, Lines: 3, Text: "why"}, job.Event{Kind: job.EventOutput, Data: []byte("b\nc\n")},
		job.Event{Kind: job.EventStepEnd, Name: "one", Status: job.StepSucceeded})
	b.commit(job.StepResult{Name: "one", Output: job.Output{Head: "a", Elided: 103, Tail: "\n", Bytes: 105}})
	st, err := b.queue.Status(t.Context(), b.id)
	if err != nil {
		t.Fatal(err)
	}
	for lines, complete := range map[int]bool{0: true, 1: true, 2: true, 3: false} {
		var r recorder
		report, err := Show(t.Context(), Source{Client: b.queue, Status: st}, NewTail(lines, &r))
		if err != nil || report.Complete != complete || complete != (len(r.notes) == 0) {
			t.Errorf("the last %d lines: got complete %t, notes %q, %v; want %t", lines, report.Complete, r.notes, err, complete)
		}
	}
}

// TestShow_BreaksOff: a store that fails in the middle of a log is no whole log.
func TestShow_BreaksOff(t *testing.T) {
	t.Parallel()
	b := setup(t)
	b.claim()
	b.object("k", strings.Repeat("x", 100<<10))
	b.commit(job.StepResult{Name: "one", Output: job.Output{Elided: 100 << 10, Bytes: 100 << 10, LogKey: "k"}})
	b.queue.Evict(b.id, math.MaxInt)
	r := b.show(func(s *Source) { s.Store = func() (Store, error) { return broken{b.store}, nil } })
	if got := b.sink.text(); r.Complete || len(got) < 32<<10 || !strings.Contains(strings.Join(b.sink.notes, "\n"), "breaks off after 40.0 KiB: odd") {
		t.Errorf("got %d bytes, complete %t, notes %q; want the beginning, and that it breaks off", len(got), r.Complete, b.sink.notes)
	}
}

// broken is a Store whose objects break off.
type broken struct{ Store }

func (b broken) Get(ctx context.Context, key string) (*wsync.Object, error) {
	o, err := b.Store.Get(ctx, key)
	if err == nil {
		o.Body = &breaking{o.Body, 40 << 10}
	}
	return o, err
}

// TestShow_AnotherLog: an object that is not what the result says is not taken for it.
func TestShow_AnotherLog(t *testing.T) {
	t.Parallel()
	b := setup(t)
	b.claim()
	b.object("k", "something else")
	b.commit(job.StepResult{Name: "one", Output: job.Output{Head: "h", Elided: 10, Bytes: 11, LogKey: "k", Truncated: 4, TruncatedAt: 3}})
	b.queue.Evict(b.id, math.MaxInt)
	if r := b.show(nil); r.Complete || !strings.Contains(strings.Join(b.sink.notes, "\n"), "not the one of the result") {
		t.Errorf("got complete %t, notes %q; want a remark", r.Complete, b.sink.notes)
	}
}

// TestShow_NotEnded: of a job that goes on there are only events; that some are missing is said, and when they can be had.
func TestShow_NotEnded(t *testing.T) {
	t.Parallel()
	b := setup(t)
	b.want(b.show(nil), "", true, "no worker has taken the job yet: it is queued")
	b.claim()
	b.emit(job.Event{Kind: job.EventStepStart, Name: "one"}, job.Event{Kind: job.EventOutput, Data: []byte("so far")})
	b.want(b.show(nil), "[claimed][step_start 0]so far", true)
	b.queue.Evict(b.id, 2)
	r := b.show(nil)
	b.want(r, "so far", false, "2 events are missing here", "submit logs "+string(b.id))
	if r.Result != nil || r.Last.Seq != 3 {
		t.Errorf("got result %v, last event %d; want none and 3", r.Result, r.Last.Seq)
	}
}

// TestShow_NeverRan: a job that ended before its first step says so, not nothing.
func TestShow_NeverRan(t *testing.T) {
	t.Parallel()
	b := setup(t)
	if _, err := b.queue.Cancel(t.Context(), b.id, job.Cancel); err != nil {
		t.Fatal(err)
	}
	b.want(b.show(nil), "[finished]", true, "no step ran: the job is canceled (canceled_by_user)")
}

// TestShow_Attempts: earlier attempts are shown as far as their events are kept; what is not kept of them is said, and does
// not count against the last one.
func TestShow_Attempts(t *testing.T) {
	t.Parallel()
	b := setup(t)
	b.claim()
	b.emit(job.Event{Kind: job.EventRetry})
	if err := b.lease.Requeue(t.Context(), job.ClassInfra, 0, job.Failure{}); err != nil {
		t.Fatal(err)
	}
	b.claim()
	b.step(0, "one", "x\n")
	b.commit(job.StepResult{Name: "one", Output: job.Output{Head: "x\n", Bytes: 2}})
	const second = "[claimed][step_start 0]x\n[step_end 0][finished]"
	b.want(b.show(nil), "[claimed][retry]"+second, true)
	b.queue.Evict(b.id, 1)
	b.want(b.show(nil), "[retry]"+second, true, "one event is missing here")
	b.queue.Evict(b.id, 1)
	b.want(b.show(nil), second, true, "attempt 1: none of its events is kept")
}

// TestShow_Step: one step alone, by name or by number; a name wins.
func TestShow_Step(t *testing.T) {
	t.Parallel()
	b := setup(t)
	b.claim()
	b.step(0, "3", "first\n")
	b.step(1, "two", "second\n")
	b.step(2, "last", "third\n")
	b.object("k", "second\n")
	b.commit(
		job.StepResult{Name: "3", Output: job.Output{Head: "first\n", Bytes: 6, NotStored: "x"}},
		job.StepResult{Name: "two", Output: job.Output{Head: "s", Elided: 5, Tail: "\n", Bytes: 7, LogKey: "k"}},
		job.StepResult{Name: "last", Output: job.Output{Head: "t", Elided: 4, Tail: "\n", Bytes: 6, LogKey: "none"}},
	)
	step := func(s string) func(*Source) { return func(src *Source) { src.Step = s } }
	for range 2 {
		for word, want := range map[string]string{"3": "0]first\n", "1": "0]first\n", "two": "1]second\n", "2": "1]second\n"} {
			r := b.show(step(word))
			if got := b.sink.text(); got != "[step_start "+want+"[step_end "+want[:1]+"]" || !r.Complete {
				t.Errorf("--step %s: got %q, complete %t", word, got, r.Complete)
			}
		}
		b.queue.Evict(b.id, math.MaxInt)
	}
	if r := b.show(step("last")); r.Complete {
		t.Error("the last step's log is gone: got complete, want not")
	}
	var unknown *NoStepError
	if _, err := b.try(step("tow")); !errors.As(err, &unknown) || !strings.Contains(err.Error(), `"two"?`) || !strings.Contains(err.Error(), "3, two, last") {
		t.Errorf("got error %v, want one with the steps and the one that was meant", err)
	}
}

// TestTail: the last lines, with what stands between them, and with their step.
func TestTail(t *testing.T) {
	t.Parallel()
	out := func(step int, s string) job.Event {
		return job.Event{Kind: job.EventOutput, Step: step, Data: []byte(s)}
	}
	start := func(step int) job.Event { return job.Event{Kind: job.EventStepStart, Step: step} }
	end := func(step int) job.Event { return job.Event{Kind: job.EventStepEnd, Step: step} }
	lines := []job.Event{start(0), out(0, "a\nb"), out(0, "b\nc\n"), end(0), start(1), out(1, "d\ne\n"), end(1)}
	open := []job.Event{start(0), out(0, "a\nb\nc"), end(0)}
	for _, tt := range []struct {
		events []job.Event
		n      int
		want   string
	}{
		{lines, 9, "[step_start 0]a\nbb\nc\n[step_end 0][step_start 1]d\ne\n[step_end 1]"},
		{lines, 5, "[step_start 0]a\nbb\nc\n[step_end 0][step_start 1]d\ne\n[step_end 1]"},
		{lines, 3, "[step_start 0]c\n[step_end 0][step_start 1]d\ne\n[step_end 1]"},
		{lines, 2, "[step_start 1]d\ne\n[step_end 1]"},
		{lines, 1, "[step_start 1]e\n[step_end 1]"},
		{lines, 0, ""},
		{open, 2, "[step_start 0]b\nc[step_end 0]"},
		{open, 1, "[step_start 0]c[step_end 0]"},
		{open, 0, ""},
		{nil, 3, ""},
	} {
		var r recorder
		tail := NewTail(tt.n, &r)
		for _, e := range tt.events {
			tail.Event(e)
		}
		tail.Note("at the %s", "end")
		tail.Flush()
		if got := r.text(); got != tt.want || len(r.notes) != 1 || r.notes[0] != "at the end" {
			t.Errorf("the last %d lines: got %q and notes %q, want %q and the note", tt.n, got, r.notes, tt.want)
		}
	}
}

// TestTail_Memory: however long the log, a tail holds no more than its lines.
func TestTail_Memory(t *testing.T) {
	t.Parallel()
	tail := NewTail(10, &recorder{})
	for range 100_000 {
		tail.Event(job.Event{Kind: job.EventOutput, Data: []byte("line\n")})
		if n := len(tail.items); n > 11 {
			t.Fatalf("it holds %d events for 10 lines", n)
		}
	}
}

var _ Sink = display.Printer(nil)

// breaking is a body that fails after so many bytes.
type breaking struct {
	io.ReadCloser
	left int
}

func (b *breaking) Read(p []byte) (int, error) {
	if b.left == 0 {
		return 0, errors.New("odd")
	}
	n, err := b.ReadCloser.Read(p[:min(len(p), b.left)])
	b.left -= n
	return n, err
}
