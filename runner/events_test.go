package runner

import (
	"context"
	"slices"
	"strings"
	"testing"

	"slipway/container"
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

// TestEvents_NoWorkspace: what a job does not have is no phase of it.
func TestEvents_NoWorkspace(t *testing.T) {
	t.Parallel()
	scenario(t, func(b *bundle) {
		b.cfg.Store = nil
		l := b.do(&job.Job{Inputs: []job.Input{{Path: "f", Content: ptr("say a")}}, Steps: []job.Step{{Read: "f"}}})
		b.want(l, job.Succeeded, "")
		if n := b.seen.get("phase push_workspace"); n != 0 {
			t.Errorf("phase push_workspace was observed %d times, want none", n)
		}
		l = b.do(jobOf(run("say a")))
		b.want(l, job.Succeeded, "")
		for _, kind := range l.kinds() {
			if strings.Contains(kind, "workspace") {
				t.Errorf("got the event %q for a job without a workspace", kind)
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

// TestEvents_LiveLimit: a chatty job's events take no more than its share, also over several attempts, and readers are told.
func TestEvents_LiveLimit(t *testing.T) {
	t.Parallel()
	scenario(t, func(b *bundle) {
		b.cfg.LiveLimit = 256 << 10
		b.boxes.exec = func(_ context.Context, _ *fakeBox, cmd container.Command) (container.Exit, error) {
			for range 1000 {
				cmd.Output(container.Stdout, []byte(strings.Repeat("0123456789", 100)+"\n"))
			}
			return container.Exit{Output: 1000 * 1001}, nil
		}
		for attempt, limit := range map[int]int{1: 256 << 10, 2: 128 << 10, 9: minLive} {
			b.attempt = attempt
			l := b.do(jobOf(run("loud"), run("loud")))
			r := b.want(l, job.Succeeded, "")
			size, told := 0, int64(0)
			for _, e := range l.events {
				size += len(mustJSON(t, e))
				if e.Step == 0 {
					told += e.Bytes
				}
			}
			if size > limit || size < limit/2 {
				t.Errorf("attempt %d: the events take %d bytes, want at most %d", attempt, size, limit)
			}
			if got := int64(len(l.output(0))) + told; got != r.Steps[0].Output.Bytes || told == 0 {
				t.Errorf("attempt %d: %d bytes were sent or told of, want %d", attempt, got, r.Steps[0].Output.Bytes)
			}
		}
	})
}
