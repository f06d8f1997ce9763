package steps

import (
	"slices"
	"strings"
	"testing"
	"time"

	"slipway/container/mock"
	"slipway/job"
	"slipway/runner/loop"
)

func TestTitle(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		step job.Step
		want string
	}{
		{job.Step{Run: "make test"}, "make test"},
		{job.Step{Run: "\n  make a\nmake b\n"}, "make a …"},
		{job.Step{Run: strings.Repeat("x", 200)}, strings.Repeat("x", maxTitle-len(" …")) + " …"},
		{job.Step{Command: []string{"go", "test", "./..."}}, "go test ./..."},
		{job.Step{Write: &job.WriteFile{Path: "a/b"}}, "write a/b"},
		{job.Step{Read: "r"}, "read r"},
		{job.Step{Delete: "d"}, "delete d"},
		{job.Step{List: "."}, "list ."},
	} {
		if got := title(&tt.step); got != tt.want {
			t.Errorf("%+v: got %q, want %q", tt.step, got, tt.want)
		}
	}
}

// TestTriesAreToldApart: between the output of two tries stands how the first one ended, and when the next one comes.
func TestTriesAreToldApart(t *testing.T) {
	t.Parallel()
	onABox(t, func(t *testing.T, p *mock.Provider, cfg Config, n *told) {
		p.On("flaky", mock.Reply{Stdout: "a", Code: 3}, mock.Reply{Stdout: "b", Code: 137, Signal: "SIGKILL"}, mock.Reply{Stdout: "c"})
		l := New(cfg, loop.Script([]job.Step{{Run: "flaky", Retry: job.Retry{Attempts: 3, Backoff: job.Duration(time.Second)}}}))
		l.Run(t.Context(), t.Context())
		l.Wait()
		want := []job.EventKind{job.EventStepStart, job.EventStepRetry, job.EventStepRetry, job.EventStepEnd}
		if !slices.Equal(n.kinds, want) {
			t.Fatalf("got %v, want %v", n.kinds, want)
		}
		for i, e := range n.events[1:3] {
			code := []int{3, 137}[i]
			if e.Tries != i+1 || *e.ExitCode != code || e.Status != job.StepFailed || !e.NotBefore.After(time.Time{}) || (e.Signal != "") != (i == 1) {
				t.Errorf("try %d: got %+v, want exit code %d, and when the next one begins", i+1, e, code)
			}
		}
	})
}
