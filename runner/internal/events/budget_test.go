package events

import (
	"bytes"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"slipway/job"
)

const limit = 128 << 10 // of the streams in this file

// bounded starts a stream that may take limit bytes.
func bounded(t *testing.T) (*Stream, *reader) {
	r := &reader{}
	sink := r.sink()
	sink.Limit = limit
	return Start(t.Context(), sink), r
}

// sent is the output of a step that was sent, and how many bytes and lines of it the reader was told are left out.
func (r *reader) sent(step int) (text string, left, lines int64) {
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, e := range r.events {
		switch {
		case e.Step != step:
		case e.Kind == job.EventOutput:
			text += string(e.Data)
		case e.Kind == job.EventDropped:
			left, lines = left+e.Bytes, lines+e.Lines
		}
	}
	return text, left, lines
}

// TestBudget_HeadAndTail: of a step that prints more than there is room for, the beginning and the end are sent, the end in
// whole lines; what is between them is told to the byte and to the line, in its place.
func TestBudget_HeadAndTail(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		e, r := bounded(t)
		var all strings.Builder
		for i := range 100_000 {
			line := fmt.Sprintf("line %d\n", i)
			all.WriteString(line)
			e.Output(0, "stdout", []byte(line))
			if i%100 == 0 {
				<-time.After(batchDelay) // the queue keeps up
			}
		}
		e.Add(job.Event{Kind: job.EventStepEnd})
		e.Close()
		text, left, lines := r.sent(0)
		kinds := r.kinds(t)
		if end := kinds[len(kinds)-3:]; strings.Join(end, " ") != "dropped output step_end" {
			t.Errorf("got %v at the end, want the gap, the end of the output and the end of the step", end)
		}
		tail := string(r.events[len(r.events)-2].Data)
		head := strings.TrimSuffix(text, tail)
		if !strings.HasPrefix(all.String(), head) || !strings.HasSuffix(all.String(), tail) || !strings.HasPrefix(tail, "line ") || len(tail) < tailSize/2 {
			t.Errorf("got %d bytes of the beginning and %q… of the end", len(head), tail[:20])
		}
		if int64(len(text))+left != int64(all.Len()) || int64(strings.Count(text, "\n"))+lines != 100_000 {
			t.Errorf("sent %d bytes, told of %d bytes and %d lines; want %d and 100000 in all", len(text), left, lines, all.Len())
		}
		if r.bytes != [2]int64{int64(all.Len()), left} || r.why != MissedLimit {
			t.Errorf("counted %v, want %d printed and %d missed", r.bytes, all.Len(), left)
		}
	})
}

// TestBudget_ManySteps: however many steps print, their output stays within the budget, and each step's is accounted for.
func TestBudget_ManySteps(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		e, r := bounded(t)
		const steps, size = 50, 40 << 10
		for i := range steps {
			e.Add(job.Event{Kind: job.EventStepStart, Step: i})
			e.Output(i, "stdout", bytes.Repeat([]byte("x"), size/2))
			e.Output(i, "stderr", bytes.Repeat([]byte("y"), size/2))
			e.Add(job.Event{Kind: job.EventStepEnd, Step: i})
			<-time.After(batchDelay)
		}
		e.Close()
		total := 0
		for i := range steps {
			text, left, _ := r.sent(i)
			if int64(len(text))+left != size {
				t.Errorf("step %d: sent %d bytes and told of %d, want %d in all", i, len(text), left, size)
			}
			total += len(text)
		}
		if base64 := total / 3 * 4; base64 > limit || base64 < limit/2 {
			t.Errorf("the output takes %d bytes, want up to %d", base64, limit)
		}
	})
}

// TestBudget_Notices: while output is left out, readers are told from time to time, and these news stay few.
func TestBudget_Notices(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		e, r := bounded(t)
		for range 600 { // 10 minutes
			e.Output(0, "stdout", bytes.Repeat([]byte("x"), 10<<10))
			<-time.After(time.Second)
		}
		synctest.Wait()
		notices := 0
		r.mu.Lock()
		for _, ev := range r.events {
			if ev.Kind == job.EventDropped {
				notices++
			}
		}
		r.mu.Unlock()
		if notices < 9 || notices > 12 {
			t.Errorf("got %d notices in ten minutes, want one a minute", notices)
		}
		e.Close()
		if text, left, _ := r.sent(0); int64(len(text))+left != 600*10<<10 {
			t.Errorf("sent %d bytes and told of %d, want %d in all", len(text), left, 600*10<<10)
		}
	})
}

// TestBudget_LargePieces: pieces that are large beside the budget leave room for the end, and make no holes before it.
func TestBudget_LargePieces(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		e, r := bounded(t)
		for range 10 {
			e.Output(0, "stdout", bytes.Repeat([]byte("x"), 50<<10))
			e.Output(0, "stdout", []byte("short\n"))
		}
		e.Add(job.Event{Kind: job.EventStepEnd})
		e.Close()
		kinds := r.kinds(t)
		if got := strings.Count(strings.Join(kinds, " "), "dropped"); got != 1 {
			t.Errorf("got %v, want one gap", kinds)
		}
		if last := r.events[len(r.events)-2]; last.Kind != job.EventOutput || !bytes.HasSuffix(last.Data, []byte("xshort\n")) || len(last.Data) < tailSize/2 {
			t.Errorf("got %d bytes at the end, want the end of the output", len(last.Data))
		}
	})
}

// TestBudget_TailOfTwoStreams: the end of a step keeps its streams apart and in order, and is a copy: a box uses its buffer again.
func TestBudget_TailOfTwoStreams(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		e, r := bounded(t)
		e.Output(0, "stdout", bytes.Repeat([]byte("x"), limit)) // the budget is spent
		e.Add(job.Event{Kind: job.EventStepEnd})
		var buffer [2]byte
		for i, stream := range []string{"stdout", "stderr", "stderr", "stdout"} {
			buffer = [2]byte{byte('a' + i), '\n'}
			e.Output(1, stream, buffer[:])
		}
		e.Add(job.Event{Kind: job.EventStepEnd, Step: 1})
		e.Close()
		var got []string
		for _, ev := range r.events {
			if ev.Kind == job.EventOutput && ev.Step == 1 {
				got = append(got, fmt.Sprintf("%s %q", ev.Stream, ev.Data))
			}
		}
		if want := []string{`stdout "a\n"`, `stderr "b\nc\n"`, `stdout "d\n"`}; !slices.Equal(got, want) {
			t.Errorf("got %v, want %v", got, want)
		}
	})
}

// TestCost: an event takes in the queue what the budget counts for it, or a little less.
func TestCost(t *testing.T) {
	t.Parallel()
	for _, n := range []int{0, 1, 2, 3, 100, 32 << 10} {
		data, err := json.Marshal(job.Event{
			JobID: job.NewID(), Generation: 1, Attempt: 1, Fence: 12345, Seq: 123456, Time: time.Now(),
			Kind: job.EventOutput, Step: 12, Stream: "stdout", Data: make([]byte, n),
		})
		if err != nil {
			t.Fatal(err)
		}
		if got, want := cost(1, n), int64(len(data)); got < want || got > want+100 {
			t.Errorf("%d bytes: counted %d, the event takes %d", n, got, want)
		}
	}
	if got, want := cost(3, 30), cost(1, 30)+2*eventWeight; got != want {
		t.Errorf("three events: counted %d, want %d", got, want)
	}
}

// TestTail_TrimLine: the end begins with a whole line, unless it has none.
func TestTail_TrimLine(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]string{"rest\nline\n": "rest\n", "\nline\n": "\n", "one line": "", "one line\n": ""} {
		var end tail
		end.add(0, "stdout", []byte(text))
		if got := string(end.trimLine()); got != want || end.size != len(text)-len(want) {
			t.Errorf("%q: removed %q, %d bytes are left; want %q removed", text, got, end.size, want)
		}
	}
}
