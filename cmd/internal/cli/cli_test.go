package cli

import (
	"errors"
	"os"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/spf13/cobra"

	"slipway/cmd/internal/exit"
	"slipway/internal/hint"
	"slipway/job"
)

// TestCountWishes: the two TERMs of timeout(1) are one wish, and a person who asks again after a second is heard again.
func TestCountWishes(t *testing.T) {
	for name, tc := range map[string]struct {
		at   []time.Duration // of the signals
		want int
	}{
		"one":                     {[]time.Duration{0}, 1},
		"two at once":             {[]time.Duration{0, 0}, 1},
		"a burst":                 {[]time.Duration{0, 300 * time.Millisecond, 600 * time.Millisecond}, 1},
		"again after a second":    {[]time.Duration{0, time.Second}, 2},
		"a key that is held down": {[]time.Duration{0, 600 * time.Millisecond, 1200 * time.Millisecond}, 2},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				signals, interrupts := make(chan os.Signal), make(chan struct{}, 8)
				go countWishes(signals, interrupts)
				begun := time.Now()
				for _, at := range tc.at {
					<-time.After(time.Until(begun.Add(at)))
					signals <- os.Interrupt
				}
				close(signals)
				synctest.Wait()
				if got := len(interrupts); got != tc.want {
					t.Errorf("got %d wishes, want %d", got, tc.want)
				}
			})
		})
	}
}

// TestExecute_Hint: an error is one line behind the program's name, its hint the next.
func TestExecute_Hint(t *testing.T) {
	for name, tc := range map[string]struct {
		err  error
		args []string
		code int
		want []string // the beginnings of the lines
	}{
		"no hint":       {err: errors.New("boom"), code: exit.Errored, want: []string{"tool: boom"}},
		"hint":          {err: hint.With(errors.New("boom"), "duck"), code: exit.Errored, want: []string{"tool: boom", "duck"}},
		"usage":         {err: hint.With(exit.Usagef("bad"), "duck"), code: exit.Usage, want: []string{"tool: bad", "duck"}},
		"escapes":       {err: hint.With(errors.New("boom"), "\x1b[31mduck"), code: exit.Errored, want: []string{"tool: boom", "duck"}},
		"wrong flag":    {args: []string{"--nope"}, code: exit.Usage, want: []string{"tool: unknown flag: --nope", "See tool --help"}},
		"not set up":    {err: (&NATS{Prefix: "p"}).Explain(job.ErrNotSetUp), code: exit.Usage, want: []string{"tool: queue is not set up", "Set --nats-prefix or SLIPWAY_NATS_PREFIX, which is p here"}},
		"silent":        {err: exit.Silent(exit.Failed), code: exit.Failed},
		"queue is away": {err: (&NATS{}).Explain(job.ErrUnavailable), code: exit.Errored, want: []string{"tool: queue unavailable", "Look at the nats-server's log"}},
	} {
		t.Run(name, func(t *testing.T) {
			var out strings.Builder
			root := &cobra.Command{Use: "tool", RunE: func(*cobra.Command, []string) error { return tc.err }}
			code := Execute(t.Context(), System{Out: &out, Err: &out}, root, tc.args)
			lines := strings.SplitAfter(out.String(), "\n")
			if code != tc.code || len(lines) != len(tc.want)+1 {
				t.Fatalf("got code %d and %q, want %d and %q", code, lines, tc.code, tc.want)
			}
			for i, want := range tc.want {
				if !strings.HasPrefix(lines[i], want) {
					t.Errorf("got line %q, want %q", lines[i], want)
				}
			}
		})
	}
}
