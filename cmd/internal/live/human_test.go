package live

import (
	"bytes"
	"strings"
	"testing"
	"time"

	"slipway/job"
)

func TestHuman_StepEnd(t *testing.T) {
	for _, tc := range []struct {
		name   string
		change func(*job.Event)
		want   string
	}{
		{"once", func(e *job.Event) { code(1)(e); e.Tries = 1 }, "✗ failed (exit code 1) after 3s"},
		{"three times", func(e *job.Event) { code(1)(e); e.Tries = 3 }, "✗ failed (exit code 1) after 3s, 3 tries"},
		{"second time lucky", func(e *job.Event) { code(0)(e); e.Tries = 2 }, "✓ succeeded after 3s, 2 tries"},
		{"canceled", func(e *job.Event) {
			code(143)(e)
			e.Status, e.Reason = job.StepCanceled, job.ReasonCanceledByUser
		}, "✗ canceled (exit code 143) after 3s"},
		{"drained", func(e *job.Event) {
			code(143)(e)
			e.Status, e.Reason = job.StepCanceled, job.ReasonDrained
		}, "– stopped after 3s: the worker stops; the job runs again elsewhere"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			var errOut bytes.Buffer
			p := NewHuman(Options{Out: &bytes.Buffer{}, Err: &errOut})
			p.Event(news(10, job.EventStepStart, nil))
			p.Event(news(40, job.EventStepEnd, tc.change))
			if _, got, _ := strings.Cut(errOut.String(), "\n"); got != "  "+tc.want+"\n" {
				t.Errorf("got %q, want %q", got, tc.want)
			}
		})
	}
}

func TestHuman_ResultInFull_Tries(t *testing.T) {
	var errOut bytes.Buffer
	NewHuman(Options{Out: &bytes.Buffer{}, Err: &errOut}).ResultInFull(&job.Result{Steps: []job.StepResult{
		{Status: job.StepFailed, Duration: job.Duration(3020 * time.Millisecond), Tries: 3},
	}})
	if want := "✗ step 1: 1 failed after 3.02s, 3 tries\n"; !strings.Contains(errOut.String(), want) {
		t.Errorf("got %q, want it to contain %q", errOut.String(), want)
	}
}

// A push that was left out on purpose does not read as one of nothing.
func TestHuman_NotSaved(t *testing.T) {
	var errOut bytes.Buffer
	NewHuman(Options{Out: &bytes.Buffer{}, Err: &errOut}).Result(&job.Result{Outcome: job.Failed, Workspace: &job.WorkspaceResult{
		Prefix: "demo/quote", FilesPulled: 12, NotSaved: "push: on_success",
	}})
	if want := "  workspace demo/quote: 12 files pulled, changes not saved (push: on_success)\n"; !strings.HasSuffix(errOut.String(), want) {
		t.Errorf("got %q, want it to end with %q", errOut.String(), want)
	}
}
