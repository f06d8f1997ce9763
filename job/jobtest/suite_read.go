package jobtest

import (
	"context"
	"errors"
	"slices"
	"testing"
	"time"

	"slipway/internal/pause"
	"slipway/job"
)

var readTests = map[string]func(*testing.T, *suite){
	"events come in order, up to the end":  events,
	"follow ends without events":           followCanceled,
	"follow spans attempts":                followAttempts,
	"events that are not kept any more":    eventsGone,
	"the end follows a dead worker's news": followSettled,
	"result waits":                         resultWaits,
	"list and status":                      list,
	"an unknown job":                       unknown,
}

// follow collects the events of id.
func (s *suite) follow(id job.ID, wait bool) []job.Event {
	s.t.Helper()
	ctx, cancel := context.WithTimeout(s.t.Context(), s.bound(patience))
	defer cancel()
	var all []job.Event
	for e, err := range s.Client.Follow(ctx, id, wait) {
		if err != nil {
			s.t.Fatalf("Follow: %v", err)
		}
		all = append(all, e)
	}
	return all
}

func kinds(events []job.Event) []job.EventKind {
	var all []job.EventKind
	for _, e := range events {
		all = append(all, e.Kind)
	}
	return all
}

func (s *suite) emit(l job.Lease, events ...job.Event) {
	s.t.Helper()
	if err := l.Emit(s.t.Context(), events); err != nil {
		s.t.Fatalf("Emit: %v", err)
	}
}

// eventsGone: a reader of a job whose events are not kept any more learns that it ended, and that is all.
func eventsGone(t *testing.T, s *suite) {
	id := s.submit()
	l := s.next(s.Join(t, "w1"))
	s.emit(l, job.Event{Seq: 1, Kind: job.EventClaimed}, job.Event{Seq: 2, Kind: job.EventOutput, Data: []byte("x")})
	s.Evict(id)
	if all := s.follow(id, false); len(all) != 0 {
		t.Errorf("a running job without events: got %v, want nothing", kinds(all))
	}
	s.commit(l)
	s.Evict(id)
	for _, wait := range []bool{false, true} {
		all := s.follow(id, wait)
		if len(all) != 1 || all[0].Kind != job.EventFinished || all[0].Outcome != job.Succeeded || all[0].Attempt != 1 {
			t.Errorf("a decided job without events (wait %t): got %v, want the end", wait, kinds(all))
		}
	}
}

func events(t *testing.T, s *suite) {
	id := s.submit()
	l := s.next(s.Join(t, "w1"))
	got := make(chan []job.Event, 1)
	go func() { defer close(got); got <- s.follow(id, true) }()
	s.emit(l, job.Event{Seq: 1, Kind: job.EventClaimed}, job.Event{Seq: 2, Kind: job.EventStepStart, Name: "one"})
	s.emit(l, job.Event{Seq: 3, Kind: job.EventOutput, Stream: "stdout", Data: []byte("\x00\xffhi")})
	s.commit(l)
	all := <-got
	want := []job.EventKind{job.EventClaimed, job.EventStepStart, job.EventOutput, job.EventFinished}
	if !slices.Equal(kinds(all), want) {
		t.Fatalf("events: got %v, want %v", kinds(all), want)
	}
	for i, e := range all {
		if d := l.Delivery(); e.JobID != id || e.Generation != 1 || e.Attempt != 1 || e.Fence != d.Fence || e.Seq != uint64(i+1) || e.Time.IsZero() {
			t.Errorf("event %d: got %+v, want its identity and Seq %d", i, e, i+1)
		}
	}
	if data := string(all[2].Data); data != "\x00\xffhi" {
		t.Errorf("output: got %q, want it byte by byte", data)
	}
	if e := all[3]; e.Outcome != job.Succeeded {
		t.Errorf("the last event: got outcome %s, want succeeded", e.Outcome)
	}
	for _, wait := range []bool{false, true} {
		if again := s.follow(id, wait); !slices.Equal(kinds(again), want) {
			t.Errorf("events afterwards, wait %t: got %v, want %v", wait, kinds(again), want)
		}
	}
}

func followCanceled(t *testing.T, s *suite) {
	id := s.submit()
	if all := s.follow(id, false); len(all) != 0 {
		t.Errorf("events of a queued job: got %v, want none", kinds(all))
	}
	got := make(chan []job.Event, 1)
	go func() { defer close(got); got <- s.follow(id, true) }()
	pause.For(t.Context(), 50*time.Millisecond) // let it wait, mostly; it must work either way
	s.cancel(id, job.Cancel, job.StateQueued)
	if all := <-got; len(all) != 1 || all[0].Kind != job.EventFinished || all[0].Outcome != job.Canceled || all[0].JobID != id {
		t.Errorf("events: got %+v, want one finished, canceled", all)
	}
}

func followAttempts(t *testing.T, s *suite) {
	id := s.submit()
	w := s.Join(t, "w1")
	l := s.next(w)
	due := time.Now().Add(time.Minute).Round(0)
	s.emit(l, job.Event{Kind: job.EventClaimed}, job.Event{Kind: job.EventRetry, Reason: job.ReasonExit, Class: job.ClassJob, Left: 2, NotBefore: due})
	if err := l.Requeue(t.Context(), job.ClassJob, 0, job.Failure{Outcome: job.Failed, Reason: job.ReasonExit}); err != nil {
		t.Fatalf("Requeue: %v", err)
	}
	l = s.next(w)
	s.emit(l, job.Event{Kind: job.EventClaimed})
	s.commit(l)
	all := s.follow(id, true)
	if want := []job.EventKind{job.EventClaimed, job.EventRetry, job.EventClaimed, job.EventFinished}; !slices.Equal(kinds(all), want) {
		t.Fatalf("events: got %v, want %v", kinds(all), want)
	}
	if e := all[1]; e.Reason != job.ReasonExit || e.Class != job.ClassJob || e.Left != 2 || !e.NotBefore.Equal(due) {
		t.Errorf("the retry: got %+v, want it as it was emitted", e)
	}
	if all[1].Seq != 2 || all[2].Attempt != 2 || all[2].Seq != 1 {
		t.Errorf("events: got %+v, want them numbered within each attempt", all)
	}
}

// followSettled: readers know an event by attempt and Seq, so the end must not repeat a Seq of the attempt that died.
func followSettled(t *testing.T, s *suite) {
	id := s.submit()
	l := s.next(s.Join(t, "victim"))
	s.emit(l, job.Event{Kind: job.EventClaimed}, job.Event{Kind: job.EventStepStart})
	s.cancel(id, job.Cancel, job.StateRunning)
	s.Kill("victim")
	stop := s.spare(s.Join(t, "w1"))
	s.result(id, job.Canceled)
	all := s.follow(id, true)
	stop()
	if want := []job.EventKind{job.EventClaimed, job.EventStepStart, job.EventFinished}; !slices.Equal(kinds(all), want) {
		t.Fatalf("events: got %v, want %v", kinds(all), want)
	}
	if e := all[2]; e.Attempt != 1 || e.Seq != 3 {
		t.Errorf("the last event: got attempt %d, Seq %d; want 1 and 3", e.Attempt, e.Seq)
	}
}

func resultWaits(t *testing.T, s *suite) {
	id := s.submit()
	short, cancel := context.WithTimeout(t.Context(), 100*time.Millisecond)
	defer cancel()
	if _, err := s.Client.Result(short, id); !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("Result of a queued job: got %v, want the context's error", err)
	}
	got := make(chan *job.Result, 1)
	go func() { defer close(got); got <- s.result(id, job.Failed) }()
	l := s.next(s.Join(t, "w1"))
	exit := 3
	r := &job.Result{Outcome: job.Failed, Reason: job.ReasonExit, Steps: []job.StepResult{{Name: "one", Status: job.StepFailed, ExitCode: &exit}}}
	if _, err := l.Commit(t.Context(), r); err != nil {
		t.Fatalf("Commit: %v", err)
	}
	if r := <-got; r == nil || len(r.Steps) != 1 || r.Steps[0].ExitCode == nil || *r.Steps[0].ExitCode != 3 || r.FinishedAt.IsZero() {
		t.Errorf("result: got %+v, want what was committed", r)
	}
}

func list(t *testing.T, s *suite) {
	w := s.Join(t, "w1")
	labeled := func(j *job.Job) { j.Labels = map[string]string{"team": "a", "suite": t.Name()} }
	done := s.submit(labeled)
	s.commit(s.next(w))
	running := s.submit()
	l := s.next(w)
	stop := s.hold(l)
	later := s.submit(func(j *job.Job) { j.NotBefore = time.Now().Add(time.Hour) })
	since := s.status(later, job.StateScheduled).SubmittedAt
	queued := s.submit(labeled, func(j *job.Job) { j.Queue = "other" })

	for _, c := range []struct {
		name string
		q    job.ListQuery
		want []job.ID
	}{
		{"all, newest first", job.ListQuery{}, []job.ID{queued, later, running, done}},
		{"one queue", job.ListQuery{Queue: "other"}, []job.ID{queued}},
		{"states", job.ListQuery{States: []job.State{job.StateDone, job.StateRunning}}, []job.ID{running, done}},
		{"limit", job.ListQuery{Limit: 2}, []job.ID{queued, later}},
		{"a label", job.ListQuery{Labels: map[string]string{"team": "a"}}, []job.ID{queued, done}},
		{"two labels", job.ListQuery{Labels: map[string]string{"team": "a", "suite": t.Name()}, States: []job.State{job.StateDone}}, []job.ID{done}},
		{"a label of another value", job.ListQuery{Labels: map[string]string{"team": ""}}, nil},
		{"a label that nothing has", job.ListQuery{Labels: map[string]string{"nobody": ""}}, nil},
		{"since a time", job.ListQuery{Since: since}, []job.ID{queued, later}},
		{"since just after it", job.ListQuery{Since: since.Add(1)}, []job.ID{queued}},
		{"filters and a limit", job.ListQuery{Labels: map[string]string{"team": "a"}, Limit: 1}, []job.ID{queued}},
		{"none", job.ListQuery{Queue: "none"}, nil},
	} {
		var got []job.ID
		for st, err := range s.Client.List(t.Context(), c.q) {
			if err != nil {
				t.Fatalf("List: %v", err)
			}
			got = append(got, st.ID)
		}
		if !slices.Equal(got, c.want) {
			t.Errorf("List of %s: got %v, want %v", c.name, got, c.want)
		}
	}
	if st := s.status(queued, job.StateQueued); st.Queue != "other" || st.Name != "suite" || st.Labels["suite"] != t.Name() || st.Generation != 1 || st.SubmittedAt.IsZero() {
		t.Errorf("status of a queued job: got %+v", st)
	}
	if st := s.status(running, job.StateRunning); st.Worker != "w1" || st.Attempt != 1 || st.StartedAt.IsZero() || st.Name != "suite" {
		t.Errorf("status of a running job: got %+v", st)
	}
	s.status(later, job.StateScheduled)
	if st := s.status(done, job.StateDone); st.FinishedAt.IsZero() {
		t.Errorf("status of a done job: got %+v", st)
	}
	stop()
	s.commit(l)
}

func unknown(t *testing.T, s *suite) {
	for _, id := range []job.ID{job.NewID(), "", "*", "a.b"} {
		if _, err := s.Client.Status(t.Context(), id); !errors.Is(err, job.ErrNotFound) {
			t.Errorf("Status of %q: got %v, want ErrNotFound", id, err)
		}
		if _, err := s.Client.Result(t.Context(), id); !errors.Is(err, job.ErrNotFound) {
			t.Errorf("Result of %q: got %v, want ErrNotFound", id, err)
		}
	}
	for _, err := range s.Client.Follow(t.Context(), job.NewID(), true) {
		if !errors.Is(err, job.ErrNotFound) {
			t.Errorf("Follow: got %v, want ErrNotFound", err)
		}
	}
}
