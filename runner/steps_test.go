package runner

import (
	"context"
	"slices"
	"testing"
	"time"

	"slipway/container"
	"slipway/job"
	"slipway/runner/internal/steps"
)

// Short words for the table.
const (
	stepOK  = job.StepSucceeded
	stepBad = job.StepFailed
	stepOut = job.StepTimedOut
	stepNo  = job.StepSkipped
)

// stepTests say how a job ends whose steps end in some way.
var stepTests = []struct {
	name    string
	job     *job.Job
	outcome job.Outcome
	reason  job.Reason
	want    []job.StepStatus
}{
	{"two succeed", jobOf(run("say a"), run("say b")), job.Succeeded, "", []job.StepStatus{stepOK, stepOK}},
	{"first fails", jobOf(run("exit 3"), run("say b")), job.Failed, job.ReasonExit, []job.StepStatus{stepBad, stepNo}},
	{
		"failure and always", jobOf(run("exit 3"), job.Step{Run: "say f", If: job.IfFailure}, always("say a"), run("say b")),
		job.Failed, job.ReasonExit,
		[]job.StepStatus{stepBad, stepOK, stepOK, stepNo},
	},
	{"no failure", jobOf(run("say a"), job.Step{Run: "say f", If: job.IfFailure}), job.Succeeded, "", []job.StepStatus{stepOK, stepNo}},
	{"continue on error", jobOf(job.Step{Run: "exit 1", ContinueOnError: true}, run("say b")), job.Succeeded, "", []job.StepStatus{stepBad, stepOK}},
	{"always fails", jobOf(run("say a"), always("exit 2")), job.Failed, job.ReasonExit, []job.StepStatus{stepOK, stepBad}},
	{"first failure counts", jobOf(run("oom"), always("exit 2")), job.Failed, job.ReasonOOM, []job.StepStatus{stepBad, stepBad}},
	{
		"step timeout", jobOf(job.Step{Run: "sleep 1h", Timeout: job.Duration(time.Second)}, run("say b"), always("say c")),
		job.TimedOut, job.ReasonStepTimeout,
		[]job.StepStatus{stepOut, stepNo, stepOK},
	},
	{
		"step timeout, continued", jobOf(job.Step{Run: "sleep 1h", Timeout: job.Duration(time.Second), ContinueOnError: true}, run("say b")),
		job.Succeeded, "",
		[]job.StepStatus{stepOut, stepOK},
	},
	{
		"job timeout", &job.Job{Timeout: job.Duration(time.Minute), Steps: []job.Step{
			run("sleep 40s"), run("sleep 40s"), run("say b"), {Run: "say f", If: job.IfFailure}, always("sleep 2m"),
		}},
		job.TimedOut, job.ReasonJobTimeout,
		[]job.StepStatus{stepOK, stepOut, stepNo, stepNo, stepOK},
	},
	{
		"ending time", &job.Job{Timeout: job.Duration(time.Minute), Steps: []job.Step{run("sleep 2m"), always("sleep 1h"), always("say c")}},
		job.TimedOut, job.ReasonJobTimeout,
		[]job.StepStatus{stepOut, stepOut, stepNo},
	},
	{
		"failure, then job timeout", &job.Job{Timeout: job.Duration(time.Minute), Steps: []job.Step{run("exit 1"), always("sleep 2m")}},
		job.Failed, job.ReasonExit,
		[]job.StepStatus{stepBad, stepOut},
	},
	{"read nothing", jobOf(job.Step{Read: "none"}), job.Failed, job.ReasonExit, []job.StepStatus{stepBad}},
	{
		"files", jobOf(
			job.Step{Write: &job.WriteFile{Path: "d/f", Content: ptr("hello")}}, job.Step{Read: "d/f"}, job.Step{List: "."},
			job.Step{Delete: "d"}, job.Step{Delete: "d"}, job.Step{Read: "d/f"},
		),
		job.Failed, job.ReasonExit,
		[]job.StepStatus{stepOK, stepOK, stepOK, stepOK, stepOK, stepBad},
	},
}

func TestSteps(t *testing.T) {
	t.Parallel()
	for _, tt := range stepTests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			scenario(t, func(b *bundle) {
				r := b.want(b.do(tt.job), tt.outcome, tt.reason)
				if got := statuses(r); !slices.Equal(got, tt.want) {
					t.Errorf("got steps %v, want %v", got, tt.want)
				}
				if (r.Message == "") != (tt.outcome == job.Succeeded) {
					t.Errorf("got message %q", r.Message)
				}
			})
		})
	}
}

func TestSteps_Result(t *testing.T) {
	t.Parallel()
	scenario(t, func(b *bundle) {
		j := jobOf(job.Step{Name: "greet", Run: "say hello; sleep 2s; exit 4"})
		j.Name, j.Labels = "mine", map[string]string{"a": "b"}
		r := b.want(b.do(j), job.Failed, job.ReasonExit)
		if r.Name != "mine" || r.Labels["a"] != "b" || r.BoxID == "" || r.ImageDigest == "" || r.Version != job.Version {
			t.Errorf("got %+v: a field of the result is missing", r)
		}
		if r.Phases.Queue.Std() != 3*time.Second || r.Phases.Steps.Std() != 2*time.Second {
			t.Errorf("got phases %+v, want queue 3s and steps 2s", r.Phases)
		}
		s := r.Steps[0]
		if s.Name != "greet" || s.ExitCode == nil || *s.ExitCode != 4 || s.Tries != 1 || s.Duration.Std() != 2*time.Second ||
			s.CPU.Std() != time.Millisecond || s.MaxRSS != 1<<20 || s.Output.Head != "hello\n" || s.Output.Bytes != 6 {
			t.Errorf("got step %+v", s)
		}
	})
}

func TestSteps_Files(t *testing.T) {
	t.Parallel()
	scenario(t, func(b *bundle) {
		l := b.do(jobOf(
			job.Step{Write: &job.WriteFile{Path: "d/f", ContentBase64: []byte("\xff\x00x")}},
			job.Step{Write: &job.WriteFile{Path: "a\"b", Content: ptr("hello")}},
			job.Step{Read: "d/f"}, job.Step{List: "."},
		))
		r := b.want(l, job.Succeeded, "")
		if got, want := l.output(2), "\xff\x00x"; got != want {
			t.Errorf("read: got %q, want %q", got, want)
		}
		if got, want := r.Steps[3].Output.Head, "\"a\\\"b\"\nd/\n"; got != want {
			t.Errorf("list: got %q, want %q", got, want)
		}
	})
}

func TestSteps_Retry(t *testing.T) {
	t.Parallel()
	scenario(t, func(b *bundle) {
		j := jobOf(job.Step{Run: "sleep 1s; exit 1", Retry: job.Retry{Attempts: 3, Backoff: job.Duration(10 * time.Second)}})
		began := time.Now()
		l := b.do(j)
		r := b.want(l, job.Failed, job.ReasonExit)
		if r.Steps[0].Tries != 3 || b.seen.get("step retried") != 2 || b.seen.get("step failed") != 1 {
			t.Errorf("got %d tries, %d retries, %d failures; want 3, 2, 1", r.Steps[0].Tries, b.seen.get("step retried"), b.seen.get("step failed"))
		}
		const all = 33 * time.Second
		if got := time.Since(began); got != all {
			t.Errorf("took %s, want 10s + 20s, and a second each", got)
		}
		if s := r.Steps[0]; s.Duration.Std() != all || !s.StartedAt.Equal(began) || s.FinishedAt.Sub(s.StartedAt) != all {
			t.Errorf("got a step from %s to %s (%s), want all its tries", s.StartedAt, s.FinishedAt, s.Duration)
		}
		if got := b.seen.lastStep(); got != time.Second {
			t.Errorf("the step's metric got %s, want the last try's second", got)
		}
		for _, e := range l.events {
			if e.Kind == job.EventStepEnd && e.Tries != 3 {
				t.Errorf("the event of its end has %d tries, want 3", e.Tries)
			}
		}
	})
}

func TestSteps_RetryEndsWithTheJob(t *testing.T) {
	t.Parallel()
	scenario(t, func(b *bundle) {
		j := jobOf(job.Step{Run: "exit 1", Retry: job.Retry{Attempts: 20, Backoff: job.Duration(time.Minute)}}, always("say bye"))
		j.Timeout = job.Duration(2 * time.Minute)
		r := b.want(b.do(j), job.Failed, job.ReasonExit)
		if r.Steps[0].Tries != 2 || r.Steps[1].Status != job.StepSucceeded {
			t.Errorf("got %d tries, then %s; want 2, then succeeded", r.Steps[0].Tries, r.Steps[1].Status)
		}
	})
}

// TestSteps_Overdue: a box that can't end a command is destroyed, and the slot is
// free again. A job whose own time was over is not tried again for it.
func TestSteps_Overdue(t *testing.T) {
	t.Parallel()
	tests := []struct {
		name string
		set  func(*job.Job)
		want func(*bundle, *fakeLease)
	}{
		{"step timeout", func(j *job.Job) { j.Steps[0].Timeout = job.Duration(time.Minute) }, func(b *bundle, l *fakeLease) { b.wantRetry(l, job.ClassInfra, job.ReasonBoxLost) }},
		{"job timeout", func(j *job.Job) { j.Timeout = job.Duration(time.Minute) }, func(b *bundle, l *fakeLease) { b.want(l, job.TimedOut, job.ReasonJobTimeout) }},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			scenario(t, func(b *bundle) {
				b.boxes.exec = func(_ context.Context, box *fakeBox, _ container.Command) (container.Exit, error) {
					<-box.gone
					return container.Exit{}, container.ErrStopped
				}
				j := jobOf(run("never ends"))
				tt.set(j)
				began := time.Now()
				l := b.do(j)
				tt.want(b, l)
				if got, want := time.Since(began), time.Minute+job.DefaultGrace+steps.ExecSlack; got != want {
					t.Errorf("took %s, want %s", got, want)
				}
			})
		})
	}
}
