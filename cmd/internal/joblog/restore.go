package joblog

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"strings"

	"slipway/cmd/internal/display"
	"slipway/internal/hint"
	"slipway/job"
	"slipway/job/follow"
)

// restore shows a step whose events are not whole from the best of what is kept: its log, its events, its result.
func (s *show) restore(have *step, r *job.StepResult) {
	if r.Status == job.StepSkipped {
		s.to.Event(s.event(r, job.Event{Kind: job.EventStepEnd, Status: r.Status}))
		return
	}
	s.to.Event(s.event(r, job.Event{Kind: job.EventStepStart, Time: r.StartedAt}))
	o := r.Output
	if !s.fromLog(r) {
		if have != nil && have.bytes > o.Bytes-o.Elided {
			s.fromEvents(have, r)
		} else {
			s.fromResult(r)
		}
	}
	s.to.Event(s.event(r, job.Event{
		Kind: job.EventStepEnd, Time: r.FinishedAt, Status: r.Status, ExitCode: r.ExitCode, Signal: r.Signal, Reason: r.Reason, Text: r.Message,
		Tries: r.Tries, Leftovers: r.Leftovers, Cut: o.Cut,
	}))
}

// event is e as one of r's.
func (s *show) event(r *job.StepResult, e job.Event) job.Event {
	all := s.report.Result
	e.JobID, e.Generation, e.Attempt, e.Fence = all.JobID, all.Generation, all.Attempt, all.Fence
	e.Step, e.Name = r.Index, r.Name
	return e
}

func (s *show) output(r *job.StepResult, data []byte) {
	if len(data) > 0 {
		e := s.event(r, job.Event{Kind: job.EventOutput, Stream: "stdout", Data: data})
		e.Name = ""
		s.to.Event(e)
	}
}

func (s *show) left(r *job.StepResult, bytes, lines int64, why string) {
	e := s.event(r, job.Event{Kind: job.EventDropped, Bytes: bytes, Lines: lines, Text: why})
	e.Name = ""
	s.to.Event(e)
}

// fromLog shows the log in the store, and reports whether it did. A log that breaks off is said.
func (s *show) fromLog(r *job.StepResult) bool {
	if r.Output.LogKey == "" {
		return false
	}
	store := s.openStore()
	if store == nil {
		return false
	}
	shown, err := s.copyLog(s.ctx, store, r)
	switch {
	case err != nil && shown == 0:
		s.remark("step %d: its log can't be read: %s%s", r.Index+1, err, advice(err))
		return false
	case err != nil:
		s.incomplete(r.Index, r.Name, fmt.Sprintf("its log breaks off after %s: %v", display.Size(shown), err))
	case r.Output.Truncated > 0:
		s.incomplete(r.Index, r.Name, fmt.Sprintf("%s of its output are kept nowhere: it went over the worker's limit for logs (job_logs)", display.Size(r.Output.Truncated)))
	}
	return true
}

func advice(err error) string {
	if h := hint.Of(err); h != "" {
		return ". " + h
	}
	return ""
}

// openStore is nil if there is no store to read.
func (s *show) openStore() Store {
	if s.opened || s.src.Store == nil {
		return s.store
	}
	s.opened = true
	store, err := s.src.Store()
	if err != nil {
		s.storeFailed = true
		s.remark("the store can't be read: %s%s", err, advice(err))
		return nil
	}
	s.store = store
	return store
}

// copyLog shows the object, and an event in the place of the line that tells of its gap.
func (s *show) copyLog(ctx context.Context, store Store, r *job.StepResult) (shown int64, err error) {
	o := r.Output
	object, err := store.Get(ctx, o.LogKey)
	if err != nil {
		return 0, err
	}
	defer object.Body.Close()
	in := bufio.NewReaderSize(object.Body, 64<<10)
	if o.Truncated == 0 {
		return s.copy(r, in)
	}
	if shown, err = s.copy(r, io.LimitReader(in, o.TruncatedAt)); err != nil {
		return shown, err
	}
	s.left(r, o.Truncated, o.TruncatedLines, "the step printed more than the worker keeps")
	line, err := in.ReadString('\n')
	if line == "\n" { // the beginning ends within a line
		line, err = in.ReadString('\n')
	}
	if want := job.LogGap(o.Truncated, o.TruncatedLines); err != nil || line != want {
		return shown, errors.Join(fmt.Errorf("the log is not the one of the result: it has %.100q where %.100q should be", line, want), err)
	}
	n, err := s.copy(r, in)
	return shown + n, err
}

func (s *show) copy(r *job.StepResult, in io.Reader) (n int64, err error) {
	for {
		piece := make([]byte, 32<<10)
		got, err := io.ReadFull(in, piece)
		n += int64(got)
		s.output(r, piece[:got])
		switch {
		case errors.Is(err, io.EOF), errors.Is(err, io.ErrUnexpectedEOF):
			return n, nil
		case err != nil:
			return n, err
		}
	}
}

// fromEvents shows what the queue has, which is more than the result has.
func (s *show) fromEvents(have *step, r *job.StepResult) {
	for _, u := range have.updates {
		if e, ok := u.(follow.Event); ok && e.Kind != job.EventOutput && e.Kind != job.EventDropped {
			continue // the result has start and end
		}
		s.pass(u)
	}
	shown := have.bytes + s.end(have, r)
	if !have.broken && r.Tries <= 1 && shown >= r.Output.Bytes {
		return
	}
	s.incomplete(r.Index, r.Name, fmt.Sprintf("%s of its output are shown; its last try printed %s; %s", display.Size(shown), display.Size(r.Output.Bytes), s.elsewhere(r)))
}

// end shows what the result's tail has after the last event, and returns how much that is. Events of a step can break off when
// a server goes away.
func (s *show) end(have *step, r *job.StepResult) (shown int64) {
	const sure = 16 // so many bytes in common are no accident
	tail := r.Output.Tail
	printed := have.last(2 * len(tail))
	for n := len(tail); n >= min(sure, len(tail)); n-- {
		if n > 0 && strings.HasSuffix(printed, tail[:n]) {
			s.output(r, []byte(tail[n:]))
			return int64(len(tail) - n)
		}
	}
	rest := r.Output.Bytes - have.bytes - int64(len(tail))
	if rest <= 0 { // they overlap in a way that is not seen, or are the same but for bytes that are no UTF-8
		return 0
	}
	s.left(r, rest, 0, "the result has the end")
	s.output(r, []byte(tail))
	return int64(len(tail))
}

// fromResult shows head and tail.
func (s *show) fromResult(r *job.StepResult) {
	o := r.Output
	s.output(r, []byte(o.Head))
	if o.Elided > 0 {
		s.left(r, o.Elided, 0, "the result has the beginning and the end")
	}
	s.output(r, []byte(o.Tail))
	if o.Elided > 0 {
		s.incomplete(r.Index, r.Name, fmt.Sprintf("%s of its output are not shown: %s", display.Size(o.Elided), s.elsewhere(r)))
	}
}

// elsewhere says where the output of a step is that is not shown.
func (s *show) elsewhere(r *job.StepResult) string {
	o := r.Output
	if o.LogKey == "" {
		why := o.NotStored
		if why == "" {
			why = "no log was stored"
		}
		return "they are kept nowhere: " + why
	}
	place := s.report.Result.Store
	if place == "" {
		place = "the workers' store"
	}
	where := fmt.Sprintf("its log is the object %s in %s", o.LogKey, place)
	if s.src.Store == nil {
		where += "; to see it here set SLIPWAY_S3_ENDPOINT, SLIPWAY_S3_BUCKET, SLIPWAY_S3_ACCESS_KEY and SLIPWAY_S3_SECRET_KEY, or read it with any S3 client"
	}
	return where
}
