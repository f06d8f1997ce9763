// Command bench measures what slipway costs beside the raw parts that it is made
// of: medians and ratios, taken in one run, the rivals interleaved sample by
// sample, since absolute times on a shared machine mean little. Run: make bench
//
//	step    one command in a running box: supervisor | docker exec (API) | fork/exec on the host
//	cold    one job of one step: slipway, queue to removal | create+start+wait+remove (API)
//	ten     one job of ten steps: slipway | docker run -d, 10 × docker exec, docker rm -f (CLI)
//	push    5,000 files of 4 KiB: slipway | one PUT per file (same SDK client)
//	pull    the same, the other way
package main

import (
	"context"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"slices"
	"time"
)

// section is one comparison. Each rival does its work once and reports how long the part that counts took.
type section struct {
	name   string
	rounds int
	rivals []rival // the first is slipway
	goals  []goal
}

type rival struct {
	name string
	run  func(ctx context.Context) (time.Duration, error)
}

// settle is the pause before each sample: the engine tears a process down after it has answered.
const settle = 40 * time.Millisecond

// goal compares slipway's median with a rival's: slipway ≤ ratio × rival.
type goal struct {
	rival string
	ratio float64
}

func main() {
	rounds := flag.Int("rounds", 30, "samples of each rival; the longer sections take a third")
	only := flag.String("only", "", "one section: step, cold, ten, push, pull")
	flag.Parse()
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	if err := run(ctx, *rounds, *only); err != nil {
		fmt.Fprintln(os.Stderr, "bench:", err)
		os.Exit(1)
	}
}

func run(ctx context.Context, rounds int, only string) error {
	p, err := newParts(ctx)
	if err != nil {
		return err
	}
	defer p.close()
	fmt.Printf("%-5s %-34s %10s %10s %10s %4s %9s\n", "", "rival", "median", "p10", "p90", "n", "slipway/")
	fmt.Printf("(files and store in %s)\n", p.dir)
	for _, build := range []func(context.Context, *parts, int) (section, error){stepSection, coldSection, tenSection, pushSection, pullSection} {
		s, err := build(ctx, p, rounds)
		if err != nil {
			return err
		}
		if only != "" && only != s.name {
			continue
		}
		if err := s.measure(ctx); err != nil {
			return fmt.Errorf("%s: %w", s.name, err)
		}
	}
	return nil
}

// measure takes s.rounds samples of every rival, interleaved, after one round that does not count.
func (s section) measure(ctx context.Context) error {
	times := make([][]time.Duration, len(s.rivals))
	for round := range s.rounds + 1 {
		for i := range s.rivals {
			r := (i + round) % len(s.rivals) // nobody is always first
			pause(ctx)
			took, err := s.rivals[r].run(ctx)
			if err != nil {
				return fmt.Errorf("%s: %w", s.rivals[r].name, err)
			}
			if round > 0 {
				times[r] = append(times[r], took)
			}
		}
	}
	s.print(times)
	return nil
}

// pause lets the engine finish what the sample before left to it: that must not be this one's cost.
func pause(ctx context.Context) {
	select {
	case <-ctx.Done():
	case <-time.After(settle):
	}
}

func (s section) print(times [][]time.Duration) {
	own := quantile(times[0], 0.5)
	for i, r := range s.rivals {
		ratio := ""
		if i > 0 {
			ratio = fmt.Sprintf("%.3f", own.Seconds()/quantile(times[i], 0.5).Seconds())
		}
		fmt.Printf("%-5s %-34s %10s %10s %10s %4d %9s\n", s.name, r.name, ms(quantile(times[i], 0.5)), ms(quantile(times[i], 0.1)), ms(quantile(times[i], 0.9)), len(times[i]), ratio)
	}
	for _, g := range s.goals {
		i := slices.IndexFunc(s.rivals, func(r rival) bool { return r.name == g.rival })
		got := own.Seconds() / quantile(times[i], 0.5).Seconds()
		verdict := "met"
		if got > g.ratio {
			verdict = "MISSED"
		}
		fmt.Printf("%-5s goal: ≤ %.3f × %s: %.3f, %s\n", s.name, g.ratio, g.rival, got, verdict)
	}
}

func quantile(d []time.Duration, q float64) time.Duration {
	sorted := slices.Sorted(slices.Values(d))
	return sorted[int(q*float64(len(sorted)-1)+0.5)]
}

func ms(d time.Duration) string { return fmt.Sprintf("%.2f ms", float64(d.Microseconds())/1000) }
