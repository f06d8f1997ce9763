package joblog

import (
	"context"
	"errors"
	"fmt"

	"slipway/cmd/internal/display"
	"slipway/job"
	"slipway/job/follow"
	wsync "slipway/sync"
)

// Sink gets what Show finds, from one goroutine. A display.Printer is one.
type Sink interface {
	Event(e job.Event)
	Note(format string, args ...any)
}

// Store is where logs are. A wsync.Store is one.
type Store interface {
	Get(ctx context.Context, key string) (*wsync.Object, error)
}

// Source says of which job, and where from.
type Source struct {
	Client job.Client
	// Status is the job as the queue knows it.
	Status job.Status
	// Store opens the store. It is called once, when a log is needed. Its error is told as a remark. Nil: the reader knows
	// no store.
	Store func() (Store, error)
	// Step is the name of the only step to show, or its number from 1. Empty: all.
	Step string
}

// Report is what Show did.
type Report struct {
	// Result is the job's, nil while it has none.
	Result *job.Result
	// Last is the last event that the queue had; see follow.After. Its zero value: none.
	Last job.Event
	// Complete: all that the last attempt printed was shown, of the steps and the last lines that were asked for.
	Complete bool

	only *only
}

// Filter is p for the events that come after Last: it passes on those of Source.Step alone.
func (r Report) Filter(p display.Printer) display.Printer {
	if r.only == nil {
		return p
	}
	live := *r.only
	live.Sink = p
	return filtered{p, &live}
}

type filtered struct {
	display.Printer
	only *only
}

func (f filtered) Event(e job.Event) { f.only.Event(e) }

// Show gives to what is kept of the job's events and output now; it does not wait for more. A *NoStepError says that the
// job has no such step. Other errors are those of the queue; a store that fails is a remark. Show flushes a *Tail, and says
// nothing of what is missing before its lines.
func Show(ctx context.Context, src Source, to Sink) (Report, error) {
	s := &show{ctx: ctx, src: src, to: to, report: Report{}}
	updates, err := s.collect()
	if err != nil {
		return s.report, err
	}
	if src.Status.State.Final() {
		if s.report.Result, err = src.Client.Result(ctx, src.Status.ID); err != nil && !errors.Is(err, job.ErrNotFound) {
			return s.report, err
		}
	}
	if src.Step != "" {
		only, err := newOnly(src.Step, s.report.Result, updates, to)
		if err != nil {
			return s.report, err
		}
		s.to, s.only, s.report.only = only, only, only
	}
	s.all(updates)
	beforeTail := false // whatever is missing
	if tail, ok := to.(*Tail); ok {
		beforeTail = !tail.Flush()
		to = tail.to
	}
	s.report.Complete = !s.unknown && (!s.missing || beforeTail)
	for _, r := range s.remarks {
		if !r.missing || !beforeTail {
			to.Note("%s", r.text)
		}
	}
	return s.report, nil
}

// show is one run of Show.
type show struct {
	ctx     context.Context //nolint:containedctx // of one run
	src     Source
	to      Sink
	only    *only // nil: all steps
	report  Report
	remarks []remark // told at the end
	missing bool     // some output of the last attempt is not shown
	unknown bool     // whether that is so, is not known

	store       Store
	storeFailed bool
	opened      bool
}

// remark is a sentence for the end.
type remark struct {
	text    string
	missing bool // it is about output that is not shown, or not as it came
}

// collect reads the events that the queue has. A job's share of them is a few MiB.
func (s *show) collect() ([]follow.Update, error) {
	var all []follow.Update
	for u, err := range follow.Stored(s.ctx, s.src.Client, s.src.Status.ID) {
		if err != nil {
			return nil, fmt.Errorf("read events: %w", err)
		}
		if e, ok := u.(follow.Event); ok {
			s.report.Last = e.Event
		}
		all = append(all, u)
	}
	return all, nil
}

// all shows the attempts, one after the other.
func (s *show) all(updates []follow.Update) {
	generation, last := s.src.Status.Generation, s.src.Status.Attempt
	if r := s.report.Result; r != nil {
		generation, last = r.Generation, r.Attempt
	}
	var final []follow.Update
	seen := map[int]bool{}
	for _, u := range updates {
		gen, attempt := attemptOf(u)
		if gen == generation {
			seen[attempt] = true
		}
		if gen == generation && attempt == last {
			final = append(final, u)
			continue
		}
		s.pass(u)
	}
	for attempt := 1; attempt < last; attempt++ {
		if !seen[attempt] {
			s.lack("attempt %d: none of its events is kept", attempt)
		}
	}
	s.attempt(final, last)
}

func attemptOf(u follow.Update) (generation, attempt int) {
	switch u := u.(type) {
	case follow.Event:
		return u.Generation, u.Attempt
	case follow.Gap:
		return u.Generation, u.Attempt
	}
	return 0, 0
}

// pass shows an event, or says that some are missing.
func (s *show) pass(u follow.Update) {
	switch u := u.(type) {
	case follow.Event:
		s.to.Event(u.Event)
	case follow.Gap:
		s.to.Note("%s", display.Gap(u))
	}
}

// attempt shows the last attempt, whose output counts.
func (s *show) attempt(updates []follow.Update, number int) {
	r := s.report.Result
	parts := divide(updates)
	switch {
	case r == nil:
		s.unfinished(updates, parts, number)
	case number == 0 || r.StartedAt.IsZero() || len(r.Steps) == 0 && r.StepsElided == 0:
		s.passAll(updates)
		s.remark("no step ran: the job is %s", ended(r))
	default:
		s.finished(parts)
	}
}

func ended(r *job.Result) string {
	text := string(r.Outcome)
	if r.Reason != "" {
		text += fmt.Sprintf(" (%s)", r.Reason)
	}
	if r.Message != "" {
		text += ": " + r.Message
	}
	return text
}

func (s *show) passAll(updates []follow.Update) {
	for _, u := range updates {
		s.pass(u)
	}
}

// unfinished shows an attempt that goes on, or of which the result is gone.
func (s *show) unfinished(updates []follow.Update, parts division, number int) {
	s.passAll(updates)
	switch st := s.src.Status; {
	case st.State.Final():
		s.unknown = true
		s.remark("the result of the job is not kept any more; the logs of its steps may still be in the store, below logs/%s/%s/", st.Queue, st.ID)
	case number == 0:
		s.remark("no worker has taken the job yet: it is %s", st.State)
	case parts.missing(s.only):
		s.missing = true
		s.lack("part of the output is missing so far; once the job has ended, submit logs %s shows what its stored logs have of it", st.ID)
	}
}

// finished shows an attempt that has a result.
func (s *show) finished(parts division) {
	s.passAll(parts.before)
	restored := false
	results := map[int]*job.StepResult{}
	for i := range s.report.Result.Steps {
		results[s.report.Result.Steps[i].Index] = &s.report.Result.Steps[i]
	}
	for _, index := range parts.indexes(results) {
		if s.only != nil && !s.only.wants(index) {
			continue
		}
		step, r := parts.steps[index], results[index]
		switch {
		case step.whole() || r == nil:
			s.passAll(step.all())
			if r == nil && !step.whole() {
				s.incomplete(index, "", "part of its events is not kept, and the result has no room for it")
			}
		default:
			restored = true
			s.restore(step, r)
		}
	}
	s.passAll(parts.after)
	if n := s.report.Result.StepsElided; n > 0 && parts.gap {
		s.lack("%s have no place in the result, so what they printed is shown as far as events are kept", display.Count(n, "step"))
		s.missing = true
	}
	if restored {
		s.lack("events are missing (the queue keeps them for a limited time, and each job has a share): steps without them are shown from their logs and from the result, where stdout and stderr are one and lines have no times")
	}
}

func (s *show) remark(format string, args ...any) {
	s.remarks = append(s.remarks, remark{text: fmt.Sprintf(format, args...)})
}

// lack is remark for what is missing.
func (s *show) lack(format string, args ...any) {
	s.remarks = append(s.remarks, remark{text: fmt.Sprintf(format, args...), missing: true})
}

// incomplete says what of a step is not shown.
func (s *show) incomplete(index int, name, why string) {
	s.missing = true
	if name == "" {
		name = fmt.Sprint(index + 1)
	}
	s.lack("step %d: %s: %s", index+1, name, why)
}
