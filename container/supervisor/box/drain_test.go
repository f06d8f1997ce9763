//go:build linux

package main

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"slipway/container"
	"slipway/container/supervisor/box/internal/boxtest"
	"slipway/test/eventually"
)

// Only looks in a row count. Output that waits for the worker is no silence, and neither is work at one of the last looks.
func TestSilence(t *testing.T) {
	type look struct {
		printed int64
		sending bool
		busy    bool
	}
	quiet, more, busy := look{printed: 7}, look{printed: 8}, look{printed: 7, busy: true}
	for _, tt := range []struct {
		name  string
		looks []look
		want  bool
	}{
		{"never looked", nil, false},
		{"one too few", []look{quiet, quiet, quiet}, false},
		{"enough", []look{quiet, quiet, quiet, quiet}, true},
		{"output renews the grace", []look{quiet, quiet, quiet, more, more, more, more}, false},
		{"and silence ends it again", []look{quiet, quiet, quiet, more, more, more, more, more}, true},
		{"a slow worker", []look{quiet, quiet, quiet, {7, true, false}, quiet, quiet, quiet}, false},
		{"for ever", slices.Repeat([]look{{7, true, false}}, 7), false},
		{"work at the last look", []look{quiet, quiet, quiet, busy, quiet, quiet, quiet}, false},
		{"work at the last but one", []look{quiet, quiet, busy, quiet}, false},
		{"work that ended in time", []look{busy, busy, quiet, quiet}, true},
		{"work for ever", slices.Repeat([]look{busy}, 10), false},
	} {
		s, got := silence{printed: 7}, false
		for _, l := range tt.looks {
			got = s.look(l.printed, l.sending, func() bool { return l.busy })
		}
		if got != tt.want {
			t.Errorf("%s: got %t, want %t", tt.name, got, tt.want)
		}
	}
}

// lines is what a script with that many lines and a last word prints.
func lines(n int) string {
	var b strings.Builder
	for i := 1; i <= n; i++ {
		fmt.Fprintf(&b, "line %d\n", i)
	}
	return b.String() + "the end\n"
}

// through prints lines(n) through a reader that outlives the script.
func through(n int, reader, redirect string) string {
	return fmt.Sprintf("rm -f p; mkfifo p; { %s; } < p & exec > p 2>&1; %s for i in $(seq 1 %d); do echo line $i; done; echo the end", reader, redirect, n)
}

// A reader that outlives its command gets the time for all that it has read.
func TestReaderOutlivesCommand(t *testing.T) {
	const loop = `while IFS= read -r l; do sleep 0.01; printf "%s\n" "$l"; done`
	eachKind(t, func(t *testing.T, alone bool) {
		r := setup(t, alone)
		for _, tt := range []struct{ name, script, want string }{
			{"stdout", through(40, loop, ""), lines(40)},
			{"stderr", through(40, "exec >&2; "+loop, ""), lines(40)},
			{"both", through(20, `while read -r l; do sleep 0.05; echo "$l"; echo "$l" >&2; done`, ""), ""},
			{"tee", through(40, "while read -r l; do sleep 0.01; echo $l; done | tee log", ""), lines(40)},
			// Far below it: a busy machine makes them longer.
			{"pauses below the grace", through(9, `while read -r l; do sleep 0.1; echo "$l"; done`, ""), lines(9)},
			{"one that sorts", through(3, "i=0; while [ $i -lt 1000000 ]; do i=$((i+1)); done; sort -n", ""), lines(3)},
			{"after a failure", through(50, loop, "trap 'exit 9' EXIT;"), lines(50)},
		} {
			x, out := r.run(tt.script)
			if tt.want == "" {
				tt.want = out
				if n := strings.Count(out, "\n"); n != 2*21 {
					t.Errorf("%s: got %d lines, want %d", tt.name, n, 2*21)
				}
			}
			if out != tt.want || x.Cut || x.Leftovers != 0 || x.TimedOut || x.Output != int64(len(out)) {
				t.Errorf("%s: got %+v, %d bytes that end with %q; want all %d, nothing cut and nothing left",
					tt.name, x, len(out), out[max(0, len(out)-40):], len(tt.want))
			}
		}
	})
}

// What prints nothing costs idleGrace if it holds the output, and less if it does not.
func TestSilentLeftovers(t *testing.T) {
	boxtest.NeedsShield(t)
	r := setup(t, false)
	x, out := r.run("sleep 600 & echo started; exit 4")
	if x.Code != 4 || out != "started\n" || x.Leftovers != 1 || x.Cut || x.Duration < idleGrace {
		t.Errorf("one that holds the output: got %+v, %q; want code 4 and one leftover after %v, nothing cut", x, out, idleGrace)
	}
	for range 20 { // a busy machine may take longer
		x, out = r.run("sleep 600 >/dev/null 2>&1 & echo started; exit 4")
		if x.Code != 4 || out != "started\n" || x.Leftovers != 1 || x.Cut {
			t.Fatalf("one that does not: got %+v, %q; want code 4 and one leftover", x, out)
		}
		if x.Duration < idleGrace {
			return
		}
	}
	t.Errorf("one that does not hold the output: got %v, want less than %v", x.Duration, idleGrace)
}

// talks goes on to print after its command, which ended with code 6.
const talks = "while :; do echo more; sleep 0.05; done & echo ready; exit 6"

// However the end comes while output still does, the exit is the command's own, and says that output is missing.
func TestCutWhilePrinting(t *testing.T) {
	eachKind(t, func(t *testing.T, alone bool) {
		r := setup(t, alone)
		check := func(name string, x container.Exit, err error) {
			if err != nil || x.Code != 6 || x.TimedOut || x.Canceled || !x.Cut || x.Leftovers == 0 {
				t.Errorf("%s: got %+v, %v; want code 6, cut, with leftovers", name, x, err)
			}
			if left := boxtest.Marked(r.mark); len(left) > 0 && !alone {
				t.Errorf("%s: processes %v are left, want none", name, left)
			}
		}
		eventually.Doubling(t, "the command is over before its timeout", func(limit time.Duration) bool {
			x, _ := r.run(talks, func(c *container.Command) { c.Timeout = limit })
			if x.TimedOut {
				return false
			}
			check("timeout", x, nil)
			return true
		})
		ctx, cancel := context.WithCancel(t.Context())
		defer cancel()
		cmd, pieces := sh(talks), 0
		cmd.Output = func(container.Stream, []byte) {
			if pieces++; pieces == 20 { // the command itself has long ended
				cancel()
			}
		}
		x, err := r.Exec(ctx, cmd)
		check("canceled", x, err)
		began := make(chan struct{})
		pieces = 0
		cmd.Output = func(container.Stream, []byte) {
			if pieces++; pieces == 20 {
				close(began)
			}
		}
		go func() {
			<-began
			_ = r.Stop(context.WithoutCancel(t.Context()), time.Minute)
		}()
		x, err = r.Exec(t.Context(), cmd)
		check("the box stops", x, err)
		r.ended(exitStopped)
	})
}

// A reader that does not listen to TERM has the rest of the grace after the command that was canceled.
func TestReaderOutlivesCanceledCommand(t *testing.T) {
	eachKind(t, func(t *testing.T, alone bool) {
		r := setup(t, alone)
		ctx, cancel := context.WithCancel(t.Context())
		defer cancel()
		var out strings.Builder
		cmd := sh(through(40, `trap "" TERM; while read -r l; do sleep 0.02; echo "$l"; done`, "trap 'echo the end; exit 3' TERM; echo ready;") + "; while :; do sleep 0.05; done")
		cmd.Grace = time.Minute
		cmd.Output = func(_ container.Stream, b []byte) {
			out.Write(b)
			cancel()
		}
		x, err := r.Exec(ctx, cmd)
		if got := out.String(); err != nil || !x.Canceled || x.Code != 3 || x.Cut || !strings.HasSuffix(got, "the end\n") {
			t.Errorf("got %+v, %v, output that ends with %q; want code 3, canceled, nothing cut, and the last words", x, err, got[max(0, len(got)-40):])
		}
	})
}
