package watch

import (
	"bytes"
	"errors"
	"fmt"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"slipway/cmd/internal/display"
	"slipway/cmd/internal/eventtest"
	"slipway/job"
	"slipway/job/follow"
)

func TestJob_Golden(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		for name, tc := range map[string]struct {
			opts     display.Options
			out, err string
		}{
			"pipes": {
				out: "hello\nred\n",
				err: `taken by worker w1
  pull image … 200ms
  create … 100ms
step 1: build
warn
  ✗ failed (exit code 7) after 400ms
  push workspace … 100ms
failed (exit) in 2.5s
  step build ended with exit code 7
  queue 3ms · steps 2s
  relaxed for this job: network_open
  workspace demo/quote: 12 files pulled, 1 file (2.0 KiB) pushed, 1 deleted
    + a.go
    - b.go
`,
			},
			"raw": {
				opts: display.Options{Raw: true},
				out:  "hello\n\x1b[31mred\x1b[0m\n",
			},
			"terminal": {
				opts: display.Options{Quote: true},
				out:  "  │ hello\n  │ red\n",
			},
		} {
			var out, errOut bytes.Buffer
			tc.opts.Out, tc.opts.Err = &out, &errOut
			s := &scripted{events: wholeJob(), result: failed}
			if _, err := Job(t.Context(), s, "X", display.NewHuman(tc.opts)); err != nil {
				t.Fatalf("%s: Job: %v", name, err)
			}
			if got := out.String(); got != tc.out {
				t.Errorf("%s: stdout:\n%q\nwant\n%q", name, got, tc.out)
			}
			if got := errOut.String(); tc.err != "" && got != tc.err {
				t.Errorf("%s: stderr:\n%s\nwant\n%s", name, got, tc.err)
			}
		}
	})
}

func TestJob_UnknownJob(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := &scripted{unknown: true, noFinish: true}
		_, err := Job(t.Context(), s, "X", display.NewJSON(display.Options{Out: &bytes.Buffer{}, Err: &bytes.Buffer{}}))
		if !errors.Is(err, job.ErrNotFound) {
			t.Errorf("got %v, want ErrNotFound", err)
		}
	})
}

func TestJob_SaysWhatItWaitsFor(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var errOut bytes.Buffer
		s := &scripted{noFinish: true, state: job.StateQueued, result: failed, resultIn: time.Minute}
		if _, err := Job(t.Context(), s, "X", display.NewHuman(display.Options{Out: &bytes.Buffer{}, Err: &errOut})); err != nil {
			t.Fatal(err)
		}
		if !strings.Contains(errOut.String(), "waiting for a worker") {
			t.Errorf("stderr lacks the reason of the wait:\n%s", &errOut)
		}
	})
}

// TestJob_Gap: what is missing is told in its place, and never among the lines of JSON.
func TestJob_Gap(t *testing.T) {
	for _, tc := range []struct {
		name   string
		events []job.Event
		want   string
	}{
		{"one", []job.Event{wholeJob()[0], wholeJob()[2], wholeJob()[10]}, "one event is missing here: not kept any more, or lost on the way\n7 events are missing here: not kept any more, or lost on the way\n"},
		{"all", []job.Event{eventtest.New(1, job.EventFinished, nil)}, "the events of attempt 1 are missing: not kept any more, or lost on the way\n"},
		{"none", wholeJob(), ""},
	} {
		t.Run(tc.name, func(t *testing.T) {
			var out, errOut bytes.Buffer
			s := &scripted{events: tc.events}
			view := screen{Printer: display.NewJSON(display.Options{Out: &out, Err: &errOut})}
			for u, err := range follow.Stored(t.Context(), s, "X") {
				if err != nil {
					t.Fatal(err)
				}
				view.show(u)
			}
			if got := errOut.String(); got != tc.want {
				t.Errorf("stderr: got %q, want %q", got, tc.want)
			}
			if got, want := strings.Count(out.String(), "\n"), len(tc.events); got != want {
				t.Errorf("stdout: got %d lines, want %d, one for each event", got, want)
			}
		})
	}
}

// TestResult: somebody who waits for the result alone sees remarks, and neither events nor that some are missing.
func TestResult(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var out, errOut bytes.Buffer
		p := display.NewHuman(display.Options{Out: &out, Err: &errOut})
		s := &scripted{noFinish: true, state: job.StateQueued, result: failed, resultIn: time.Minute}
		if r, err := Result(t.Context(), s, "X", p); err != nil || r != failed {
			t.Errorf("got %v, %v; want the result", r, err)
		}
		s = &scripted{events: wholeJob()[3:], result: failed}
		if r, err := Result(t.Context(), s, "X", p); err != nil || r != failed {
			t.Errorf("got %v, %v; want the result", r, err)
		}
		if got := errOut.String(); strings.Count(got, "\n") != 1 || !strings.Contains(got, "waiting for a worker") || out.Len() > 0 {
			t.Errorf("got %q and %q, want one remark", got, &out)
		}
	})
}

func TestInterruptible(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		for _, tc := range []struct {
			interrupts int
			cancels    []job.CancelMode
			err        error
			outcome    job.Outcome
		}{
			{0, nil, nil, job.Failed},
			{1, []job.CancelMode{job.Cancel}, nil, job.Failed}, // the cancel was too late
			{2, []job.CancelMode{job.Cancel, job.Abort}, nil, job.Canceled},
			{3, []job.CancelMode{job.Cancel, job.Abort}, ErrDetached, ""},
		} {
			s := &scripted{noFinish: true, result: failed, resultIn: time.Hour}
			if tc.interrupts == 2 {
				s.canceled = make(chan struct{})
			}
			interrupts := make(chan struct{}, 3)
			for range tc.interrupts {
				interrupts <- struct{}{}
			}
			r, err := Interruptible(t.Context(), s, "X", display.NewHuman(display.Options{Out: &bytes.Buffer{}, Err: &bytes.Buffer{}}), interrupts, "leaves it alone")
			if !errors.Is(err, tc.err) || fmt.Sprint(s.cancels) != fmt.Sprint(tc.cancels) {
				t.Errorf("%d interrupts: cancels %v, error %v; want %v, %v", tc.interrupts, s.cancels, err, tc.cancels, tc.err)
			}
			if err == nil && r.Outcome != tc.outcome {
				t.Errorf("%d interrupts: outcome %s, want %s", tc.interrupts, r.Outcome, tc.outcome)
			}
		}
	})
}

func TestJSON_Lines(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var out bytes.Buffer
		p := display.NewJSON(display.Options{Out: &out, Err: &bytes.Buffer{}})
		p.Submitted(&job.Job{ID: "ID", Name: "n"})
		s := &scripted{events: []job.Event{eventtest.Output(1, "stdout", "hi")}, result: &job.Result{Version: "1", Outcome: job.Succeeded}}
		if _, err := Job(t.Context(), s, "ID", p); err != nil {
			t.Fatal(err)
		}
		lines := strings.Split(strings.TrimSpace(out.String()), "\n")
		if len(lines) != 3 {
			t.Fatalf("got %d lines, want 3:\n%s", len(lines), &out)
		}
		for i, want := range []string{
			`{"kind":"submitted","job_id":"ID","name":"n","queue":"default"}`,
			`"kind":"output","stream":"stdout","data":"aGk="`,
			`"outcome":"succeeded"`,
		} {
			if !strings.Contains(lines[i], want) {
				t.Errorf("line %d: got %s, want it to contain %s", i+1, lines[i], want)
			}
		}
		if strings.Contains(lines[2], `"kind"`) {
			t.Errorf("the result has a kind: %s", lines[2])
		}
	})
}
