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
	"slipway/cmd/internal/sanitize"
	"slipway/internal/hint"
	"slipway/job"
)

func newCancel(a *app) *cobra.Command {
	cmd := &cobra.Command{
		Use: "cancel ID", Short: "End a job, in whatever state it is", Args: cli.OneArg("ID"),
		Long: `cancel asks for the end of a job. A job that waits will not start. In one that runs, the
running step is ended, and steps with "if: always" still run; its workspace is saved only if the
job says "push: always". With --abort everything ends at once. It does not wait for that: see
submit result --wait.
With --output json it prints {"job_id":…,"met":…}, the state that the cancel met. A final one means that it
came too late. That is no failure: the exit code is 0 whether the job will end or has ended.`,
		Example: "  submit cancel 01JF8ZQ3K4M5N6P7Q8R9S0T1V2 && submit result --wait 01JF8ZQ3K4M5N6P7Q8R9S0T1V2",
	}
	abort := cmd.Flags().Bool("abort", false, "end everything at once, without always-steps and without a push")
	output := cli.AddOutput(cmd)
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		ids, err := cli.ParseIDs(args)
		if err != nil {
			return err
		}
		mode := job.Cancel
		if *abort {
			mode = job.Abort
		}
		return a.withClient(cmd, func(ctx context.Context, c job.Client) error {
			met, err := c.Cancel(ctx, ids[0], mode)
			if err != nil {
				return explainUnknown(err)
			}
			if *output == cli.JSON {
				return json.NewEncoder(a.sys.Out).Encode(map[string]any{"job_id": ids[0], "met": met})
			}
			if met.Final() {
				_, err = fmt.Fprintf(a.sys.Out, "too late: %s is %s already\n", ids[0], met)
			} else {
				_, err = fmt.Fprintf(a.sys.Out, "%s was %s; its end was asked for\n", ids[0], met)
			}
			return err
		})
	}
	return cmd
}

func newDead(a *app) *cobra.Command {
	cmd := &cobra.Command{
		Use: "dead", Short: "Jobs that slipway gave up on: list, requeue, drop", Args: cobra.NoArgs,
		Long: `dead shows the jobs that used up their budget for infrastructure failures or for crashed
workers. They are kept until somebody decides: requeue runs one again, as its next generation with
fresh budgets; drop forgets the letter, the result stays.`,
		RunE: func(cmd *cobra.Command, _ []string) error { return cmd.Help() },
	}
	list := &cobra.Command{Use: "list", Short: "List dead jobs", Args: cobra.NoArgs}
	output := cli.AddOutput(list)
	list.RunE = func(cmd *cobra.Command, _ []string) error {
		return a.withClient(cmd, func(ctx context.Context, c job.Client) error { return a.listDead(ctx, c, *output) })
	}
	cmd.AddCommand(list,
		a.deadAction("requeue ID", "Run a dead job again", "is in its queue again", job.Client.RequeueDead),
		a.deadAction("drop ID", "Forget a dead job; its result stays", "is forgotten", job.Client.DropDead))
	return cmd
}

func (a *app) listDead(ctx context.Context, c job.Client, output cli.Output) error {
	table := newTable(a.sys.Out, "ID\tQUEUE\tREASON\tDIED\tNAME\tLAST FAILURE")
	for d, err := range c.DeadLetters(ctx) {
		if a.passOver(err) {
			continue
		}
		if err != nil {
			return errors.Join(table.end(false), fmt.Errorf("list dead jobs: %w", err))
		}
		if output == cli.JSON {
			if err := json.NewEncoder(a.sys.Out).Encode(d); err != nil {
				return err
			}
			continue
		}
		last := ""
		if f := d.Status.LastFailure; f != nil {
			last = fmt.Sprintf("%s: %s", f.Reason, f.Message)
		}
		if err := table.row("%s\t%s\t%s\t%s\t%s\t%s\n", d.ID, sanitize.Line(d.Queue), sanitize.Line(string(d.Status.Reason)), display.Ago(d.At, time.Now()),
			sanitize.Line(d.Status.Name), sanitize.Line(last)); err != nil {
			return err
		}
	}
	return table.end(output == cli.Text)
}

func (a *app) deadAction(use, short, done string, do func(job.Client, context.Context, job.ID) error) *cobra.Command {
	return &cobra.Command{
		Use: use, Short: short, Args: cli.OneArg("ID"),
		RunE: func(cmd *cobra.Command, args []string) error {
			ids, err := cli.ParseIDs(args)
			if err != nil {
				return err
			}
			return a.withClient(cmd, func(ctx context.Context, c job.Client) error {
				err := do(c, ctx, ids[0]) // it says what was to be done
				if errors.Is(err, job.ErrNotFound) {
					return hint.With(err, "submit dead list shows those that are")
				}
				if err != nil {
					return err
				}
				_, err = fmt.Fprintln(a.sys.Out, ids[0], done)
				return err
			})
		},
	}
}
