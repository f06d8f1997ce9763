package jobtest

import (
	"errors"
	"testing"

	"slipway/job"
)

var deadTests = map[string]func(*testing.T, *suite){
	"the crash budget makes a dead letter": crashBudget,
	"an infra budget's result is kept":     infraBudget,
	"a dead letter that is not there":      noLetter,
}

// letters lists the dead letters.
func (s *suite) letters() []job.DeadLetter {
	s.t.Helper()
	var all []job.DeadLetter
	for d, err := range s.Client.DeadLetters(s.t.Context()) {
		if err != nil {
			s.t.Fatalf("DeadLetters: %v", err)
		}
		all = append(all, d)
	}
	return all
}

func crashBudget(t *testing.T, s *suite) {
	id := s.submit()
	var fence uint64
	for i := range s.CrashBudget + 1 {
		name := "victim-" + string(rune('a'+i))
		l := s.next(s.Join(t, name))
		fence = l.Delivery().Fence
		s.emit(l, job.Event{Kind: job.EventClaimed})
		s.Kill(name)
	}
	w := s.Join(t, "w1")
	stop := s.spare(w)
	r := s.result(id, job.Errored)
	stop()
	if r.Reason != job.ReasonCrashBudget || r.Attempt != s.CrashBudget+1 || r.Message == "" {
		t.Errorf("result: got %+v, want crash_budget after %d attempts", r, s.CrashBudget+1)
	}
	if news := s.follow(id, true); len(news) != s.CrashBudget+2 || news[len(news)-1].Kind != job.EventFinished || news[len(news)-1].Seq != 2 {
		t.Errorf("events: got %+v, want each attempt's, and the end with Seq 2", news)
	}
	all := s.letters()
	if len(all) != 1 || all[0].ID != id || all[0].Generation != 1 || all[0].Status.State != job.StateErrored || all[0].Result == nil || all[0].At.IsZero() {
		t.Fatalf("dead letters: got %+v, want the job's", all)
	}
	if j, err := job.Decode(all[0].Spec); err != nil || j.ID != id {
		t.Errorf("the letter's spec: got %v, %v; want job %s", j, err, id)
	}

	if err := s.Client.RequeueDead(t.Context(), id); err != nil {
		t.Fatalf("RequeueDead: %v", err)
	}
	l := s.next(w)
	if d := l.Delivery(); d.ID != id || d.Generation != 2 || d.Attempt != 1 || d.Counts != (job.Counts{}) || d.Fence <= fence {
		t.Errorf("delivery: got %+v, want generation 2 with fresh budgets and a fence above %d", d, fence)
	}
	s.commit(l)
	if r := s.result(id, job.Succeeded); r.Generation != 2 {
		t.Errorf("generation: got %d, want 2", r.Generation)
	}
	if left := s.letters(); len(left) != 0 {
		t.Errorf("dead letters after the requeue: got %d, want none", len(left))
	}
	s.nothing(w, s.Timing.AckWait/2)
}

func infraBudget(t *testing.T, s *suite) {
	id := s.submit()
	l := s.next(s.Join(t, "w1"))
	if _, err := l.Commit(t.Context(), &job.Result{Outcome: job.Errored, Reason: job.ReasonInfraBudget, Message: "no engine"}); err != nil {
		t.Fatalf("Commit: %v", err)
	}
	if all := s.letters(); len(all) != 1 || all[0].ID != id || all[0].Result == nil || all[0].Result.Message != "no engine" {
		t.Fatalf("dead letters: got %+v, want the job's", all)
	}
	if err := s.Client.DropDead(t.Context(), id); err != nil {
		t.Fatalf("DropDead: %v", err)
	}
	if all := s.letters(); len(all) != 0 {
		t.Errorf("dead letters after the drop: got %d, want none", len(all))
	}
	s.result(id, job.Errored)
}

func noLetter(t *testing.T, s *suite) {
	if err := s.Client.RequeueDead(t.Context(), job.NewID()); !errors.Is(err, job.ErrNotFound) {
		t.Errorf("RequeueDead: got %v, want ErrNotFound", err)
	}
	if err := s.Client.DropDead(t.Context(), job.NewID()); !errors.Is(err, job.ErrNotFound) {
		t.Errorf("DropDead: got %v, want ErrNotFound", err)
	}
}
