package display

import (
	"bytes"
	"strings"
	"testing"
	"time"

	"slipway/cmd/internal/eventtest"
	"slipway/job"
)

func TestHuman_StepEnd(t *testing.T) {
	for _, tc := range []struct {
		name   string
		change func(*job.Event)
		want   string
	}{
		{"once", func(e *job.Event) { eventtest.ExitCode(1)(e); e.Tries = 1 }, "✗ failed (exit code 1) after 3s"},
		{"three times", func(e *job.Event) { eventtest.ExitCode(1)(e); e.Tries = 3 }, "✗ failed (exit code 1) after 3s, 3 tries"},
		{"second time lucky", func(e *job.Event) { eventtest.ExitCode(0)(e); e.Tries = 2 }, "✓ succeeded after 3s, 2 tries"},
		{"canceled", func(e *job.Event) {
			eventtest.ExitCode(143)(e)
			e.Status, e.Reason = job.StepCanceled, job.ReasonCanceledByUser
		}, "✗ canceled (exit code 143) after 3s"},
		{"drained", func(e *job.Event) {
			eventtest.ExitCode(143)(e)
			e.Status, e.Reason, e.Text = job.StepCanceled, job.ReasonDrained, "the worker stops"
		}, "– stopped after 3s: the worker stops; the job runs again elsewhere"},
		{"with a reason", func(e *job.Event) { e.Status, e.Text = job.StepFailed, "ro/a:\x1b[A permission denied" }, "✗ failed after 3s\n    ro/a: permission denied"},
		{"one left over", func(e *job.Event) { eventtest.ExitCode(0)(e); e.Leftovers = 1 }, "✓ succeeded after 3s\n    1 process that its command left running was ended"},
		{"some, with output", func(e *job.Event) { eventtest.ExitCode(2)(e); e.Leftovers, e.Cut = 3, true }, "✗ failed (exit code 2) after 3s\n    3 processes that its command left running were ended; output is missing: more of it could come"},
		{"none, with output", func(e *job.Event) { eventtest.ExitCode(0)(e); e.Cut = true }, "✓ succeeded after 3s\n    output is missing: more of it could come"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			var errOut bytes.Buffer
			p := NewHuman(Options{Out: &bytes.Buffer{}, Err: &errOut})
			p.Event(eventtest.New(10, job.EventStepStart, nil))
			p.Event(eventtest.New(40, job.EventStepEnd, tc.change))
			if _, got, _ := strings.Cut(errOut.String(), "\n"); got != "  "+tc.want+"\n" {
				t.Errorf("got %q, want %q", got, tc.want)
			}
		})
	}
}

// A person who did not follow the job learns as much.
func TestHuman_ResultInFull_Leftovers(t *testing.T) {
	var errOut bytes.Buffer
	NewHuman(Options{Out: &bytes.Buffer{}, Err: &errOut}).ResultInFull(&job.Result{Steps: []job.StepResult{
		{Status: job.StepSucceeded, Leftovers: 1, Output: job.Output{Cut: true}},
	}})
	if want := "succeeded after 0s\n    1 process that its command left running was ended; output is missing: more of it could come\n"; !strings.Contains(errOut.String(), want) {
		t.Errorf("got %q, want it to contain %q", errOut.String(), want)
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
func TestHuman_ResultInFull_Elided(t *testing.T) {
	t.Parallel()
	var errOut bytes.Buffer
	NewHuman(Options{Out: &bytes.Buffer{}, Err: &errOut}).ResultInFull(&job.Result{
		Steps: []job.StepResult{{Index: 0, Name: "first"}, {Index: 299, Name: "last"}}, StepsElided: 298,
	})
	if got, want := errOut.String(), "… 298 steps left out …\n"; strings.Count(got, "left out") != 1 || !strings.Contains(got, want) {
		t.Errorf("got %q, want it to say once %q", got, want)
	}
}

func TestHuman_NotSaved(t *testing.T) {
	var errOut bytes.Buffer
	NewHuman(Options{Out: &bytes.Buffer{}, Err: &errOut}).Result(&job.Result{Outcome: job.Failed, Workspace: &job.WorkspaceResult{
		Prefix: "demo/quote", FilesPulled: 12, NotSaved: "push: on_success",
	}})
	if want := "  workspace demo/quote: 12 files pulled, changes not saved (push: on_success)\n"; !strings.HasSuffix(errOut.String(), want) {
		t.Errorf("got %q, want it to end with %q", errOut.String(), want)
	}
}

// Somebody who waits for an image that can't be pulled sees how long that may go on.
func TestHuman_Retry(t *testing.T) {
	for want, change := range map[string]func(*job.Event){
		"next try in 40s, 8 tries left": func(e *job.Event) {
			e.Class, e.Left, e.NotBefore = job.ClassInfra, 8, e.Time.Add(40*time.Second-time.Microsecond)
		},
		"next try in 5m0s, the last one": func(e *job.Event) { e.Class, e.Left, e.NotBefore = job.ClassInfra, 1, e.Time.Add(5*time.Minute) },
		"next try at once, 2 tries left": func(e *job.Event) { e.Class, e.Left = job.ClassJob, 2 },
		"next try at once, at no cost":   func(e *job.Event) { e.Class = job.ClassShutdown },
	} {
		var errOut bytes.Buffer
		NewHuman(Options{Out: &errOut, Err: &errOut}).Event(eventtest.New(3, job.EventRetry, func(e *job.Event) {
			e.Attempt, e.Reason, e.Text = 3, job.ReasonImagePull, "pull x: \x1b[2Jno route"
			change(e)
		}))
		if got, want := errOut.String(), "attempt 3 ended (image_pull): pull x: no route; "+want+"\n"; got != want {
			t.Errorf("got %q, want %q", got, want)
		}
	}
}

func TestHuman_HostileNames(t *testing.T) {
	var out, errOut bytes.Buffer
	p := NewHuman(Options{Out: &out, Err: &errOut, Quote: true})
	p.Submitted(&job.Job{Name: "x\x1b]0;t\x07\nsucceeded"})
	p.Event(eventtest.New(1, job.EventStepStart, func(e *job.Event) { e.Name = "a\r\x1b[1A" }))
	p.Event(eventtest.Output(2, "stdout", "no newline"))
	p.Event(eventtest.Output(3, "stderr", "succeeded in 1s\r\x1b[2Kfake"))
	p.Event(eventtest.New(4, job.EventStepEnd, eventtest.ExitCode(0)))
	p.ResultInFull(&job.Result{
		Outcome: job.Failed, Message: "m\x1b[0m", Name: "\u202e",
		Steps: []job.StepResult{{Name: "s\x1b", Status: job.StepFailed, Message: "\x07", Output: job.Output{Head: "\x1b[H", Elided: 5, Tail: "t\x1b[J"}}},
	})
	all := out.String() + errOut.String()
	if strings.ContainsAny(all, "\x1b\x07\r") || strings.ContainsRune(all, '\u202e') {
		t.Errorf("hostile bytes got through: %q", all)
	}
	for line := range strings.Lines(errOut.String()) {
		if strings.HasPrefix(line, "succeeded") || strings.HasPrefix(line, "fake") {
			t.Errorf("a line of the job passes for ours: %q", line)
		}
	}
}
