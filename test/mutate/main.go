package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"os/signal"
	"path/filepath"
	"regexp"
	"runtime"
	"slices"
	"strings"
	"sync"
	"syscall"
	"time"
)

// options are the flags.
type options struct {
	tests, judged, only string
	jobs, sample        int
	seed                uint64
	limit               time.Duration
	all, list, verbose  bool
}

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	var o options
	flag.StringVar(&o.tests, "tests", "", "packages whose tests are run, separated by commas (default: the package itself)")
	flag.StringVar(&o.judged, "judged", "test/mutate/judged.txt", "file of judged survivors, which are not printed: lines \"key | reason\"")
	flag.StringVar(&o.only, "only", "", "mutants whose file:line and key match this regular expression")
	flag.IntVar(&o.jobs, "j", runtime.NumCPU(), "mutants that are tried at the same time")
	flag.IntVar(&o.sample, "sample", 0, "try so many mutants, drawn by -seed (default: every one)")
	flag.Uint64Var(&o.seed, "seed", 1, "the draw of -sample: the same seed and source give the same mutants")
	flag.DurationVar(&o.limit, "limit", 15*time.Second, "time for a mutant's tests, on top of four times what they took without it")
	flag.BoolVar(&o.all, "all", false, "try also what no test reaches, each against every test")
	flag.BoolVar(&o.list, "list", false, "print the mutants and try none")
	flag.BoolVar(&o.verbose, "v", false, "print every mutant with its outcome as it is tried")
	flag.Usage = func() {
		fmt.Fprintln(flag.CommandLine.Output(), "usage: mutate [flags] package\n\nExit code: 0 no new survivors, 1 there are some, 2 it could not run.")
		flag.PrintDefaults()
	}
	flag.Parse()
	if flag.NArg() != 1 || o.jobs < 1 {
		flag.Usage()
		os.Exit(2)
	}
	survivors, err := run(ctx, flag.Arg(0), o, os.Stdout)
	stop()
	switch {
	case err != nil:
		fmt.Fprintln(os.Stderr, "mutate:", err)
		os.Exit(2)
	case survivors > 0:
		os.Exit(1)
	}
}

// run tries the mutants of one package and returns the number of new survivors.
func run(ctx context.Context, pattern string, o options, out io.Writer) (int, error) {
	began := time.Now()
	only, err := regexp.Compile(o.only)
	if err != nil {
		return 0, err
	}
	known, err := readJudged(o.judged)
	if err != nil {
		return 0, err
	}
	p, err := load(ctx, pattern)
	if err != nil {
		return 0, err
	}
	tmp, err := os.MkdirTemp("", "mu") // short: sockets of tests lie below it
	if err != nil {
		return 0, err
	}
	defer os.RemoveAll(tmp)
	if err := os.Chmod(tmp, 0o711); err != nil { // tests that act as another user get at their folders, as below /tmp
		return 0, err
	}
	b := &bench{tmp: tmp, limit: o.limit, all: o.all}
	if !o.list {
		if err := b.measure(ctx, p, o, out); err != nil {
			return 0, err
		}
	}
	all := p.mutants()
	for _, key := range known.stale(p.files, all) {
		fmt.Fprintf(out, "stale in %s: %s\n", o.judged, key)
	}
	c := p.choose(all, only, b, o)
	fmt.Fprintf(out, "%s: %d mutants: %d that no test reaches, %d of the others looked at, %d of these do not compile, %d to try (seed %d)\n",
		p.path, len(all), c.unreached, c.looked, c.invalid, len(c.mutants), o.seed)
	if o.list {
		for _, m := range c.mutants {
			fmt.Fprintf(out, "%s:%d: %s\n%s", m.file.name, m.line(), m.key(), m.diff())
		}
		return 0, nil
	}
	verdicts, err := b.tryAll(ctx, p.path, c.mutants, o, out)
	return report(out, verdicts, known, time.Since(began)), err
}

func (b *bench) measure(ctx context.Context, p *pkg, o options, out io.Writer) error {
	paths := []string{p.path}
	if o.tests != "" {
		paths = strings.Split(o.tests, ",")
	}
	for _, path := range paths {
		s, err := measure(ctx, p.path, path, b.tmp, o.jobs)
		if err != nil {
			return err
		}
		b.suites = append(b.suites, s)
		var took time.Duration
		for _, t := range s.tests {
			took += t.took
		}
		fmt.Fprintf(out, "%s: %d tests pass, one by one in %v\n", s.path, len(s.tests), took.Round(100*time.Millisecond))
	}
	return nil
}

// choice is the mutants that are tried, and what became of the others.
type choice struct {
	mutants                    []mutant
	unreached, looked, invalid int
}

// choose draws the mutants to try, in the order of the source. Whether a mutant compiles is asked for those that are drawn only.
func (p *pkg) choose(all []mutant, only *regexp.Regexp, b *bench, o options) choice {
	var c choice
	var candidates []mutant
	for _, m := range all {
		if !only.MatchString(fmt.Sprintf("%s:%d %s", m.file.name, m.line(), m.key())) {
			continue
		}
		if !o.list && !slices.ContainsFunc(b.suites, func(s *suite) bool { return len(b.reaching(s, p.path, m)) > 0 }) {
			c.unreached++
			continue
		}
		candidates = append(candidates, m)
	}
	order := make([]int, len(candidates))
	for i := range order {
		order[i] = i
	}
	rnd := rand.New(rand.NewPCG(o.seed, 0))
	rnd.Shuffle(len(order), func(i, j int) { order[i], order[j] = order[j], order[i] })
	var chosen []int
	for _, i := range order {
		if o.sample > 0 && len(chosen) == o.sample {
			break
		}
		c.looked++
		if !p.compiles(&candidates[i]) {
			c.invalid++
			continue
		}
		chosen = append(chosen, i)
	}
	slices.Sort(chosen)
	for _, i := range chosen {
		c.mutants = append(c.mutants, candidates[i])
	}
	return c
}

// tryAll tries the mutants, o.jobs at a time. If ctx ends it returns what was found out until then, and the cause.
func (b *bench) tryAll(ctx context.Context, target string, mutants []mutant, o options, out io.Writer) ([]verdict, error) {
	verdicts, errs := make([]verdict, len(mutants)), make([]error, len(mutants))
	var done []verdict
	var mu sync.Mutex // of out
	inParallel(len(mutants), o.jobs, func(i int) {
		if ctx.Err() != nil {
			return
		}
		verdicts[i], errs[i] = b.try(ctx, target, mutants[i], filepath.Join(b.tmp, fmt.Sprint(i)))
		if o.verbose && errs[i] == nil {
			mu.Lock()
			defer mu.Unlock()
			v := verdicts[i]
			fmt.Fprintf(out, "%-9s %s:%d: %s  %s\n", v.outcome, v.file.name, v.line(), v.key(), short(v.by))
		}
	})
	for i, v := range verdicts {
		if v.outcome != "" && errs[i] == nil {
			done = append(done, v)
		}
	}
	if err := context.Cause(ctx); err != nil {
		return done, err
	}
	return done, errors.Join(errs...)
}

// report prints the new survivors and the sums, and returns the number of new survivors.
func report(out io.Writer, verdicts []verdict, known judged, took time.Duration) int {
	sums, old, fresh := map[outcome]int{}, 0, 0
	for _, v := range verdicts {
		sums[v.outcome]++
		if v.outcome != survived {
			continue
		}
		if known[v.key()] != "" {
			old++
			continue
		}
		fresh++
		fmt.Fprintf(out, "survived %s:%d: %s\n%s", v.file.name, v.line(), v.key(), v.diff())
	}
	fmt.Fprintf(out, "%d tried in %v: %d killed, %d timed out, %d not built, %d survived (%d judged, %d new)\n",
		len(verdicts), took.Round(time.Second), sums[killed], sums[timedOut], sums[broken], sums[survived], old, fresh)
	return fresh
}
