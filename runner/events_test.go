package runner

import (
	"slices"
	"testing"

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
		l := b.do(jobOf(run("lost")))
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
