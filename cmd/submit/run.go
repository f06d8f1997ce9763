package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"github.com/spf13/cobra"

	"slipway/cmd/internal/cli"
	"slipway/cmd/internal/display"
	"slipway/cmd/internal/exit"
	"slipway/cmd/internal/settings"
	"slipway/cmd/internal/watch"
	"slipway/internal/hint"
	"slipway/job"
	"slipway/job/natsqueue"
)

const runLong = `run submits the job in FILE, shows its events as they come, and ends with the
exit code of its outcome.

What the job prints to stdout goes to stdout, its stderr and everything that
slipway says to stderr. Escape sequences and control characters are removed, unless --raw.

With --output json every line on stdout is an object. A line with "kind" is news: first
"submitted" (job_id, queue), then the job's events; the data of an "output" event is in
base64. The last line has no "kind": it is the result, as submit result -o json prints it.

Interrupt (Ctrl-C, SIGTERM): the first cancels the job (steps with "if: always" still run, and a
workspace with "push: always" is saved), the second aborts it, the third leaves it to itself.`

func newRun(a *app) *cobra.Command {
	cmd := &cobra.Command{
		Use: "run FILE", Short: "Submit a job, follow it live, exit with its outcome",
		Long: runLong + "\n\n" + exit.Help, Args: cli.OneArg("FILE"),
		Example: `  submit run hello.yaml
  submit run --label pr=17 --env SEED=3 test.yaml
  generate-job | submit run -`,
	}
	overrides := cli.AddOverrides(cmd.Flags())
	output := cli.AddOutput(cmd)
	raw := cmd.Flags().Bool("raw", false, "pass the job's output on as it is, escape sequences included")
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		j, err := a.prepare(args[0], overrides)
		if err != nil {
			return err
		}
		return a.run(cmd.Context(), j, a.sys.Printer(*output, *raw))
	}
	return cmd
}

// queueVariable names the queue of jobs that name none. A context has it as the setting queue.
const queueVariable = settings.EnvPrefix + "QUEUE"

// prepare reads a job and makes it ready to be submitted.
func (a *app) prepare(file string, o *cli.Overrides) (*job.Job, error) {
	j, err := a.sys.ReadJob(file)
	if err != nil {
		return nil, err
	}
	if j.Queue == "" {
		environ, err := a.environ()
		if err != nil {
			return nil, err
		}
		j.Queue, _ = settings.Env(environ, queueVariable)
	}
	return j, o.Apply(j, time.Now())
}

func (a *app) run(ctx context.Context, j *job.Job, p display.Printer) error {
	submitCtx, stop := a.sys.Interruptible(ctx)
	defer stop()
	return a.open(submitCtx, func(c job.Client) error {
		known, err := submit(submitCtx, c, j)
		if err != nil {
			return err
		}
		stop() // from here on interrupts are for the job
		p.Submitted(j)
		if known {
			p.Note("a job of this id was submitted before; following that one")
		} else if remark := unserved(ctx, c, j.Queue); remark != "" {
			p.Note("%s", remark)
		}
		seen := &holes{Printer: p}
		r, err := watch.Interruptible(ctx, c, j.ID, seen, a.sys.Interrupts, "leaves it alone")
		if errors.Is(err, job.ErrNotSetUp) || errors.Is(err, job.ErrNotFound) {
			// It was when the job was accepted: the queue lost it, the caller made no mistake.
			return &exit.Error{Code: exit.Errored, Err: fmt.Errorf("follow job %s: %w", j.ID, err)}
		}
		if err != nil {
			return fmt.Errorf("follow job %s: %w", j.ID, err)
		}
		if seen.some {
			p.Note("submit logs %s shows what is kept of the output that is left out above", j.ID)
		}
		return exit.Silent(exit.Outcome(r.Outcome))
	})
}

// holes is a Printer that remembers whether output was left out.
type holes struct {
	display.Printer
	some bool
}

// Event prints e.
func (h *holes) Event(e job.Event) {
	h.some = h.some || e.Kind == job.EventDropped
	h.Printer.Event(e)
}

// submit puts j into the queue. known: it was there before.
func submit(ctx context.Context, c job.Client, j *job.Job) (known bool, err error) {
	err = c.Submit(ctx, j)
	var denied *natsqueue.PermissionError
	switch {
	case err == nil:
		return false, nil
	case errors.Is(err, job.ErrExists):
		return true, nil
	case ctx.Err() != nil:
		return false, fmt.Errorf("submit job %s: %w; submit again with --id %s to be sure", j.ID, context.Cause(ctx), j.ID)
	case errors.As(err, &denied): // a kind of ErrUnavailable, but no doubt
		return false, fmt.Errorf("%w; the job was not accepted", err)
	case errors.Is(err, job.ErrUnavailable):
		return false, fmt.Errorf("%w; whether the job arrived is unknown: submit again with --id %s, which does no harm", err, j.ID)
	case errors.Is(err, job.ErrOtherJob):
		err = hint.With(err, "Leave out --id, and the job gets an id of its own; or look at the other one: submit status %s", j.ID)
	case errors.Is(err, job.ErrFull): // nor here; what to do is the error's own hint
		return false, fmt.Errorf("%w; the job was not accepted", err)
	}
	return false, err // as all errors of the queue, it names the job
}

func newCreate(a *app) *cobra.Command {
	cmd := &cobra.Command{
		Use: "create FILE", Short: "Submit a job and print its id",
		Long: `create submits the job in FILE and prints its id on stdout, nothing else.
Once it returns 0 the job is accepted: it will end with exactly one result.
With --output json it prints {"kind":"submitted","job_id":…,"name":…,"queue":…}.`,
		Args:    cli.OneArg("FILE"),
		Example: "  submit create --not-before 2h --queue nightly bench.yaml",
	}
	overrides := cli.AddOverrides(cmd.Flags())
	output := cli.AddOutput(cmd)
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		j, err := a.prepare(args[0], overrides)
		if err != nil {
			return err
		}
		return a.withClient(cmd, func(ctx context.Context, c job.Client) error {
			known, err := submit(ctx, c, j)
			if err != nil {
				return err
			}
			if known {
				fmt.Fprintln(a.sys.Err, "a job of this id was submitted before")
			} else if remark := unserved(ctx, c, j.Queue); remark != "" {
				fmt.Fprintln(a.sys.Err, remark)
			}
			if *output == cli.JSON {
				return json.NewEncoder(a.sys.Out).Encode(display.NewSubmission(j))
			}
			_, err = fmt.Fprintln(a.sys.Out, j.ID)
			return err
		})
	}
	return cmd
}
