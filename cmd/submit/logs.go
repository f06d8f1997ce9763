package main

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/spf13/cobra"

	"slipway/cmd/internal/cli"
	"slipway/cmd/internal/display"
	"slipway/cmd/internal/exit"
	"slipway/cmd/internal/joblog"
	"slipway/cmd/internal/settings"
	"slipway/cmd/internal/watch"
	"slipway/internal/hint"
	"slipway/job"
)

const logsLong = `logs shows what a job printed, also long after its end. Like run, it writes the job's stdout to
stdout and the rest to stderr. It takes the job's events while the queue keeps them (24 hours,
unless the workers' owner says otherwise). A step without them is shown from its log in the store,
if this program may read the store (--s3-bucket and the variables SLIPWAY_S3_ACCESS_KEY and
SLIPWAY_S3_SECRET_KEY), else from the head and tail in the job's result; there stdout and stderr are
one. What is missing then is said on stderr, with the reason and where it lies. docs/logs.md says
what is kept, and for how long.

With -f it goes on until the job ends; an interrupt leaves the job alone. With --output json the
lines are those of submit run -o json, the result only with -f; events made from a log have seq 0.

Exit codes, without -f:
  0    all that the job's last attempt printed is shown, as far as --step and --tail ask for it
  2    no such job (any more), or no such step
  3    the queue does not answer
  4    some of it is not shown; stderr says what, and why
With -f: the exit code of the job's outcome, as with run.`

// logsFlags are the flags of logs.
type logsFlags struct {
	follow, raw, timestamps bool
	step                    string
	tail                    int
	output                  *cli.Output
	s3                      cli.S3
	set                     *settings.Set
}

func newLogs(a *app) *cobra.Command {
	cmd := &cobra.Command{
		Use: "logs ID", Short: "Show what a job printed", Args: cli.OneArg("ID"), Long: logsLong,
		Example: `  submit logs -f 01JF8ZQ3K4M5N6P7Q8R9S0T1V2
  submit logs --step test --tail 100 01JF8ZQ3K4M5N6P7Q8R9S0T1V2`,
	}
	f := &logsFlags{output: cli.AddOutput(cmd), set: settings.New(cmd.Flags())}
	cmd.Flags().BoolVarP(&f.follow, "follow", "f", false, "go on until the job ends")
	cmd.Flags().BoolVar(&f.raw, "raw", false, "pass the job's output on as it is, escape sequences included")
	cmd.Flags().BoolVar(&f.timestamps, "timestamps", false, "put the time (UTC) before each line of output; a dash where it is not known")
	cmd.Flags().StringVar(&f.step, "step", "", "only this step: its name, or its number from 1")
	cmd.Flags().IntVar(&f.tail, "tail", -1, "only the last so many lines of output, and with -f what comes after them; -1: all")
	f.s3.Register(f.set, "the store is not read")
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		ids, err := cli.ParseIDs(args)
		if err != nil {
			return err
		}
		if f.tail < -1 {
			return exit.Usagef("--tail %d: must be 0 or more, or -1 for all", f.tail)
		}
		environ, err := a.environ()
		if err != nil {
			return err
		}
		readStore, err := f.store(cmd, environ)
		if err != nil {
			return err
		}
		return a.withClient(cmd, func(ctx context.Context, c job.Client) error {
			return a.logs(ctx, c, ids[0], f, readStore)
		})
	}
	return cmd
}

// store returns how to open the store, nil if none is set. Bad settings in the environment may be a worker's on the same
// machine: they count only if the store is needed.
func (f *logsFlags) store(cmd *cobra.Command, environ []string) (func() (joblog.Store, error), error) {
	err := f.set.Resolve(environ, "", nil)
	given := false
	for _, s := range f.set.List() {
		given = given || !s.Secret && cmd.Flags().Changed(strings.TrimPrefix(s.Flag(), "--"))
	}
	switch {
	case err != nil && given:
		return nil, exit.UsageError(err)
	case err != nil:
		return func() (joblog.Store, error) { return nil, err }, nil
	case f.s3.Bucket == "":
		return nil, nil
	}
	return func() (joblog.Store, error) { return f.s3.Open() }, nil
}

func (a *app) logs(ctx context.Context, c job.Client, id job.ID, f *logsFlags, store func() (joblog.Store, error)) error {
	st, err := c.Status(ctx, id)
	if errors.Is(err, job.ErrNotFound) {
		return hint.With(explainUnknown(err), "%s. Logs in the store outlive the job: they are the objects below logs/QUEUE/%s/", hint.Of(explainUnknown(err)), id)
	}
	if err != nil {
		return err
	}
	opts := a.sys.Screen(f.raw)
	opts.Timestamps = f.timestamps
	p := f.output.Printer(opts)
	report, err := show(ctx, joblog.Source{Client: c, Status: st, Store: store, Step: f.step}, f.tail, p)
	var unknown *joblog.NoStepError
	switch {
	case errors.As(err, &unknown):
		return exit.UsageError(fmt.Errorf("logs of %s: %w", id, err))
	case err != nil:
		return fmt.Errorf("logs of %s: %w", id, err)
	case !f.follow:
		flush(p)
		if !report.Complete {
			return exit.Silent(exit.Partial)
		}
		return nil
	}
	a.remark(ctx, c, st)
	r := report.Result
	if r != nil {
		p.Result(r)
	} else if r, err = watch.After(ctx, c, id, report.Last, report.Filter(p)); err != nil {
		return fmt.Errorf("logs of %s: %w", id, err)
	}
	return exit.Silent(exit.Outcome(r.Outcome))
}

// show shows what is kept by now, or the last lines of it.
func show(ctx context.Context, src joblog.Source, lines int, p display.Printer) (joblog.Report, error) {
	if lines < 0 {
		return joblog.Show(ctx, src, p)
	}
	return joblog.Show(ctx, src, joblog.NewTail(lines, p))
}

// flush ends the lines that are still open, since no result follows.
func flush(p display.Printer) {
	if h, ok := p.(*display.Human); ok {
		h.Flush()
	}
}
