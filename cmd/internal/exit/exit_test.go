package exit

import (
	"errors"
	"fmt"
	"os"
	"strings"
	"testing"

	"slipway/job"
)

func TestOutcome(t *testing.T) {
	want := map[job.Outcome]int{job.Succeeded: 0, job.Failed: 1, job.TimedOut: 124, job.Canceled: 130, job.Errored: 3}
	for _, o := range job.Outcomes() {
		code, ok := want[o]
		if !ok {
			t.Fatalf("outcome %q has no exit code in this table", o)
		}
		if got := Outcome(o); got != code {
			t.Errorf("Outcome(%q) = %d, want %d", o, got, code)
		}
	}
	if got := Outcome("nonsense"); got != Errored {
		t.Errorf("Outcome of an unknown word = %d, want %d", got, Errored)
	}
}

func TestCode(t *testing.T) {
	boom := errors.New("boom")
	for name, tc := range map[string]struct {
		err  error
		code int
		says bool
	}{
		"nothing":         {nil, 0, false},
		"unknown":         {boom, Errored, true},
		"usage":           {UsageError(boom), Usage, true},
		"wrapped usage":   {fmt.Errorf("read: %w", Usagef("bad %d", 1)), Usage, true},
		"silent":          {Silent(TimedOut), TimedOut, false},
		"silent success":  {Silent(OK), OK, false},
		"silent and more": {errors.Join(Silent(Failed), boom), Failed, true},
		"unknown job":     {fmt.Errorf("status: %w", job.ErrNotFound), Usage, true},
		"queue is away":   {fmt.Errorf("submit: %w", job.ErrUnavailable), Errored, true},
		"no such queue":   {fmt.Errorf("submit: %w", job.ErrNotSetUp), Usage, true},
		"queue is full":   {job.ErrFull, Errored, true},
		"canceled in Err": {&Error{Code: Canceled, Err: boom}, Canceled, true},
	} {
		code, say := Code(tc.err)
		if code != tc.code || (say != nil) != tc.says {
			t.Errorf("%s: Code = %d, %v; want %d, something to say: %t", name, code, say, tc.code, tc.says)
		}
	}
}

// What people read about job files has the same codes.
func TestOutcome_Page(t *testing.T) {
	page, err := os.ReadFile("../../../docs/job.md")
	if err != nil {
		t.Fatal(err)
	}
	for _, o := range job.Outcomes() {
		if want := fmt.Sprintf("\n| `%s` | %d | ", o, Outcome(o)); !strings.Contains(string(page), want) {
			t.Errorf("docs/job.md lacks a row that begins %q", want)
		}
	}
}
