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
		{"killed", func(e *job.Event) { eventtest.ExitCode(137)(e); e.Signal = "SIGKILL\x1b" }, "✗ failed (exit code 137, SIGKILL) after 3s"},
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

// The tries of a step are told apart, with why each one failed and when the next one comes.
func TestHuman_StepRetry(t *testing.T) {
	var out, errOut bytes.Buffer
	p := NewHuman(Options{Out: &out, Err: &errOut})
	p.Event(eventtest.New(1, job.EventStepStart, func(e *job.Event) { e.Name, e.Text = "1", "./flaky\x1b[A …" }))
	p.Event(eventtest.Output(2, "stdout", "first"))
	p.Event(eventtest.New(3, job.EventStepRetry, func(e *job.Event) {
		eventtest.ExitCode(139)(e)
		e.Signal, e.Tries, e.Text, e.NotBefore = "SIGSEGV", 1, "why", e.Time.Add(2*time.Second)
	}))
	p.Event(eventtest.New(4, job.EventStepRetry, func(e *job.Event) { e.Status, e.Tries = job.StepTimedOut, 2 }))
	want := "step 1: ./flaky …\n  ✗ try 1 failed (exit code 139, SIGSEGV); next try in 2s\n    why\n  ✗ try 2 timed out; next try at once\n"
	if got := errOut.String(); got != want {
		t.Errorf("got %q, want %q", got, want)
	}
}

// A step with a name of its own is known by it.
func TestHuman_Title(t *testing.T) {
	for _, tc := range []struct{ name, text, want string }{
		{"test", "go test ./...", "step 1: test\n"},
		{"1", "go test ./...", "step 1: go test ./...\n"},
		{"", "x", "step 1: x\n"},
		{"1", "", "step 1: 1\n"},
		{"2", "x", "step 1: 2\n"},
	} {
		var errOut bytes.Buffer
		NewHuman(Options{Out: &errOut, Err: &errOut}).Event(eventtest.New(1, job.EventStepStart, func(e *job.Event) { e.Name, e.Text = tc.name, tc.text }))
		if errOut.String() != tc.want {
			t.Errorf("%q, %q: got %q, want %q", tc.name, tc.text, errOut.String(), tc.want)
		}
	}
}

// Every view says what of a step's output is missing, where, and why.
func TestHuman_LeftOut(t *testing.T) {
	missing := []job.StepResult{
		{Index: 0, Name: "all", Status: job.StepSucceeded, Output: job.Output{Head: "x", Bytes: 1}},
		{Index: 1, Name: "long", Status: job.StepSucceeded, Output: job.Output{Bytes: 3 << 20, Elided: 2 << 20, LogKey: "logs/k\x1b"}},
		{Index: 2, Name: "huge", Status: job.StepSucceeded, Output: job.Output{Bytes: 9 << 20, Elided: 8 << 20, LogKey: "logs/l", Truncated: 1 << 20, TruncatedLines: 70}},
		{Index: 3, Name: "gone", Status: job.StepSucceeded, Output: job.Output{Bytes: 9 << 20, Elided: 8 << 20, NotStored: "the worker has no\nstore"}},
	}
	result := &job.Result{Outcome: job.Succeeded, Steps: missing, Store: "s3://b at http://s"}
	for name, tc := range map[string]struct {
		show       func(*Human)
		want, lack []string
	}{
		"too much": {func(p *Human) {
			p.Event(eventtest.New(1, job.EventDropped, func(e *job.Event) { e.Bytes, e.Lines, e.Text = 1<<20, 12, "why\nnot" }))
		}, []string{"  … 1.0 MiB (12 lines) left out here: why not\n"}, nil},
		"by an older worker": {func(p *Human) {
			p.Event(eventtest.New(1, job.EventDropped, func(e *job.Event) { e.Bytes = 5 }))
		}, []string{"  … 5 B left out here: it came too fast\n"}, nil},
		"at the step's end": {func(p *Human) {
			p.Event(eventtest.New(1, job.EventStepEnd, func(e *job.Event) { e.Truncated, e.TruncatedLines = 1<<20, 1 }))
		}, []string{"stored log leaves out 1.0 MiB (1 line) between beginning and end"}, nil},
		"live result": {func(p *Human) { p.Result(result) }, []string{
			"step 3: huge: its stored log leaves out 1.0 MiB (70 lines)", "step 4: gone: 8.0 MiB of its output are kept nowhere: the worker has no store\n",
		}, []string{"step 1", "step 2"}},
		"result in full": {func(p *Human) { p.ResultInFull(result) }, []string{
			"3.0 MiB of output: submit logs shows them, or object logs/k\n", "leaves out 1.0 MiB (70 lines)", "kept nowhere: the worker has no store", "objects are in s3://b at http://s",
		}, []string{"1 B of output"}},
	} {
		var errOut bytes.Buffer
		tc.show(NewHuman(Options{Out: &bytes.Buffer{}, Err: &errOut}))
		for _, want := range tc.want {
			if !strings.Contains(errOut.String(), want) {
				t.Errorf("%s: got %q, want it to contain %q", name, errOut.String(), want)
			}
		}
		for _, lack := range tc.lack {
			if strings.Contains(errOut.String(), lack) {
				t.Errorf("%s: got %q, want it without %q", name, errOut.String(), lack)
			}
		}
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
		Steps: []job.StepResult{{Name: "s\x1b", Status: job.StepFailed, Message: "\x07", Output: job.Output{Head: "\x1b[H\x00", Elided: 5, Tail: "t\x1b[J", NotStored: "\x1b\x00"}}},
	})
	all := out.String() + errOut.String()
	if strings.ContainsAny(all, "\x1b\x07\r\x00") || strings.ContainsRune(all, '\u202e') {
		t.Errorf("hostile bytes got through: %q", all)
	}
	for line := range strings.Lines(errOut.String()) {
		if strings.HasPrefix(line, "succeeded") || strings.HasPrefix(line, "fake") {
			t.Errorf("a line of the job passes for ours: %q", line)
		}
	}
}
