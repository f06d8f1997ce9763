package live

import (
	"bytes"
	"errors"
	"fmt"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"slipway/job"
)

func TestFollow_Golden(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		for name, tc := range map[string]struct {
			opts     Options
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
				opts: Options{Raw: true},
				out:  "hello\n\x1b[31mred\x1b[0m\n",
			},
			"terminal": {
				opts: Options{Quote: true},
				out:  "  │ hello\n  │ red\n",
			},
		} {
			var out, errOut bytes.Buffer
			tc.opts.Out, tc.opts.Err = &out, &errOut
			s := &scripted{events: wholeJob(), result: failed}
			if _, err := Follow(t.Context(), s, "X", NewHuman(tc.opts)); err != nil {
				t.Fatalf("%s: Follow: %v", name, err)
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
		NewHuman(Options{Out: &errOut, Err: &errOut}).Event(news(3, job.EventRetry, func(e *job.Event) {
			e.Attempt, e.Reason, e.Text = 3, job.ReasonImagePull, "pull x: \x1b[2Jno route"
			change(e)
		}))
		if got, want := errOut.String(), "attempt 3 ended (image_pull): pull x: no route; "+want+"\n"; got != want {
			t.Errorf("got %q, want %q", got, want)
		}
	}
}

func TestFollow_EachEventOnceOverAReconnection(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var out bytes.Buffer
		s := &scripted{events: wholeJob(), breakAt: 7, result: failed, resultIn: time.Second, failing: 1}
		if _, err := Follow(t.Context(), s, "X", NewHuman(Options{Out: &out, Err: &bytes.Buffer{}})); err != nil {
			t.Fatal(err)
		}
		if got, want := out.String(), "hello\nred\n"; got != want || s.follows != 2 {
			t.Errorf("got %q after %d connections, want %q after 2", got, s.follows, want)
		}
	})
}

// A queue waits 2 s itself for an end that nobody sends, before it makes one from the result.
func TestFollow_LastEventAfterTheResult(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var out bytes.Buffer
		s := &scripted{events: wholeJob(), lastIn: 2500 * time.Millisecond, result: failed}
		if _, err := Follow(t.Context(), s, "X", NewJSON(Options{Out: &out, Err: &bytes.Buffer{}})); err != nil {
			t.Fatal(err)
		}
		if lines := strings.Split(out.String(), "\n"); len(lines) != len(wholeJob())+2 || !strings.Contains(lines[len(lines)-3], `"kind":"finished"`) {
			t.Errorf("got %d lines, want all events and the result:\n%s", len(lines)-1, out.String())
		}
	})
}

func TestFollow_ResultWithoutTheLastEvent(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		begun := time.Now()
		s := &scripted{events: wholeJob()[:8], noFinish: true, result: failed, resultIn: time.Minute}
		r, err := Follow(t.Context(), s, "X", NewHuman(Options{Out: &bytes.Buffer{}, Err: &bytes.Buffer{}}))
		if err != nil || r != failed {
			t.Fatalf("got %v, %v", r, err)
		}
		if got, want := time.Since(begun), time.Minute+lateNews; got != want {
			t.Errorf("took %v, want %v", got, want)
		}
	})
}

func TestFollow_UnknownJob(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := &scripted{unknown: true, noFinish: true}
		_, err := Follow(t.Context(), s, "X", NewJSON(Options{Out: &bytes.Buffer{}, Err: &bytes.Buffer{}}))
		if !errors.Is(err, job.ErrNotFound) {
			t.Errorf("got %v, want ErrNotFound", err)
		}
	})
}

func TestFollow_SaysWhatItWaitsFor(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var errOut bytes.Buffer
		s := &scripted{noFinish: true, state: job.StateQueued, result: failed, resultIn: time.Minute}
		if _, err := Follow(t.Context(), s, "X", NewHuman(Options{Out: &bytes.Buffer{}, Err: &errOut})); err != nil {
			t.Fatal(err)
		}
		if !strings.Contains(errOut.String(), "waiting for a worker") {
			t.Errorf("stderr lacks the reason of the wait:\n%s", &errOut)
		}
	})
}

func TestFollowInterruptible(t *testing.T) {
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
			r, err := FollowInterruptible(t.Context(), s, "X", NewHuman(Options{Out: &bytes.Buffer{}, Err: &bytes.Buffer{}}), interrupts, "leaves it alone")
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
		p := NewJSON(Options{Out: &out, Err: &bytes.Buffer{}})
		p.Submitted(&job.Job{ID: "ID", Name: "n"})
		s := &scripted{events: []job.Event{output(1, "stdout", "hi")}, result: &job.Result{Version: "1", Outcome: job.Succeeded}}
		if _, err := Follow(t.Context(), s, "ID", p); err != nil {
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

func TestHuman_HostileNames(t *testing.T) {
	var out, errOut bytes.Buffer
	p := NewHuman(Options{Out: &out, Err: &errOut, Quote: true})
	p.Submitted(&job.Job{Name: "x\x1b]0;t\x07\nsucceeded"})
	p.Event(news(1, job.EventStepStart, func(e *job.Event) { e.Name = "a\r\x1b[1A" }))
	p.Event(output(2, "stdout", "no newline"))
	p.Event(output(3, "stderr", "succeeded in 1s\r\x1b[2Kfake"))
	p.Event(news(4, job.EventStepEnd, code(0)))
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

func TestShortAndSize(t *testing.T) {
	for d, want := range map[time.Duration]string{
		0: "0s", time.Microsecond: "<1ms", 1500 * time.Microsecond: "2ms", 1234 * time.Millisecond: "1.23s",
		12345 * time.Millisecond: "12.3s", 100*time.Second + 300*time.Millisecond: "1m40s",
	} {
		if got := Short(d); got != want {
			t.Errorf("Short(%d) = %s, want %s", d, got, want)
		}
	}
	for n, want := range map[int64]string{0: "0 B", 1023: "1023 B", 1536: "1.5 KiB", 3 << 30: "3.0 GiB"} {
		if got := Size(n); got != want {
			t.Errorf("Size(%d) = %s, want %s", n, got, want)
		}
	}
}
