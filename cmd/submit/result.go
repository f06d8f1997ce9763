package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"

	"github.com/spf13/cobra"

	"slipway/cmd/internal/cli"
	"slipway/cmd/internal/display"
	"slipway/cmd/internal/exit"
	"slipway/cmd/internal/watch"
	"slipway/internal/hint"
	"slipway/job"
	"slipway/job/follow"
)

func newResult(a *app) *cobra.Command {
	cmd := &cobra.Command{
		Use: "result ID", Short: "Show how a job ended, and exit with its outcome", Args: cli.OneArg("ID"),
		Long: `result shows how a job ended: outcome, reason, steps, and what became of its workspace. Its exit
code is that of the outcome, as with run. A job that has not ended yet is an error with exit
code 3, unless --wait. With --output json it prints the result as one object.` + "\n\n" + exit.Help,
		Example: `  submit result --wait 01JF8ZQ3K4M5N6P7Q8R9S0T1V2
  submit result -o json 01JF8ZQ3K4M5N6P7Q8R9S0T1V2 | jq .workspace.changes`,
	}
	wait := cmd.Flags().Bool("wait", false, "wait until the job has ended")
	output := cli.AddOutput(cmd)
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		ids, err := cli.ParseIDs(args)
		if err != nil {
			return err
		}
		return a.withClient(cmd, func(ctx context.Context, c job.Client) error {
			return a.result(ctx, c, ids[0], *wait, *output)
		})
	}
	return cmd
}

func (a *app) result(ctx context.Context, c job.Client, id job.ID, wait bool, output cli.Output) error {
	r, err := a.await(ctx, c, id, wait)
	switch {
	case err == nil:
	case ctx.Err() != nil:
		return fmt.Errorf("result of job %s: %w", id, err)
	default:
		return explainUnknown(err) // the queue names the job
	}
	if output == cli.JSON {
		if err := json.NewEncoder(a.sys.Out).Encode(r); err != nil {
			return err
		}
	} else {
		screen := a.sys.Screen(false)
		screen.Err = a.sys.Out // here the result is what was asked for
		display.NewHuman(screen).ResultInFull(r)
	}
	return exit.Silent(exit.Outcome(r.Outcome))
}

// await returns the result of a job. If the job has no result yet and wait is set, await waits for it, and says so when
// that takes long.
func (a *app) await(ctx context.Context, c job.Client, id job.ID, wait bool) (*job.Result, error) {
	st, err := c.Status(ctx, id)
	switch {
	case wait && errors.Is(err, job.ErrUnavailable): // waited for, too
	case err != nil:
		return nil, err
	case st.State.Final():
		return follow.Result(ctx, c, id)
	case !wait:
		return nil, fmt.Errorf("result of job %s: the job has none yet, it is %s; add --wait to wait for it", id, st.State)
	}
	return watch.Result(ctx, c, id, a.sys.Printer(cli.Text, false))
}

// keptDays is how long a decided job is known, unless a program of one's own sets the queue up otherwise.
const keptDays = 30

// explainUnknown adds to the error of an unknown job how that can be.
func explainUnknown(err error) error {
	if !errors.Is(err, job.ErrNotFound) {
		return err
	}
	return hint.With(err, "What is known of a job goes %d days after its end; submit list shows the jobs that are known. Another installation's have another --nats-prefix", keptDays)
}
