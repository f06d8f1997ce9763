package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"text/tabwriter"
	"time"

	"github.com/spf13/cobra"

	"slipway/cmd/internal/cli"
	"slipway/cmd/internal/sanitize"
	"slipway/job"
)

func newStatus(a *app) *cobra.Command {
	cmd := &cobra.Command{
		Use: "status ID", Short: "Show where a job stands", Args: cli.OneArg("ID"),
		Long: `status shows where a job stands: its state, its attempts, and why the last one ended.
With --output json it prints the job's record as one object.`,
		Example: "  submit status 01JF8ZQ3K4M5N6P7Q8R9S0T1V2",
	}
	output := cli.AddOutput(cmd)
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		ids, err := cli.ParseIDs(args)
		if err != nil {
			return err
		}
		return a.withClient(cmd, func(ctx context.Context, c job.Client) error {
			st, err := c.Status(ctx, ids[0])
			if err != nil {
				return explainUnknown(err)
			}
			if *output == cli.JSON {
				return json.NewEncoder(a.sys.Out).Encode(st)
			}
			if err := printStatus(a.sys.Out, st); err != nil {
				return err
			}
			a.remark(ctx, c, st)
			return nil
		})
	}
	return cmd
}

func printStatus(w io.Writer, st job.Status) error {
	tw := tabwriter.NewWriter(w, 0, 4, 2, ' ', 0)
	row := func(name, value string) {
		if value != "" {
			fmt.Fprintf(tw, "%s\t%s\n", name, sanitize.Line(value))
		}
	}
	row("job", string(st.ID))
	row("name", st.Name)
	row("queue", st.Queue)
	row("labels", labels(st.Labels))
	row("state", string(st.State))
	row("reason", string(st.Reason))
	if st.Cancel && !st.State.Final() {
		row("cancel", "requested")
	}
	if st.Attempt > 0 {
		row("attempt", fmt.Sprint(st.Attempt))
	}
	if st.Generation > 1 {
		row("generation", fmt.Sprint(st.Generation))
	}
	row("worker", st.Worker)
	if f := st.LastFailure; f != nil {
		row("last failure", fmt.Sprintf("%s/%s %s", f.Outcome, f.Reason, f.Message))
	}
	row("submitted", stamp(st.SubmittedAt))
	if st.State == job.StateScheduled {
		row("not before", stamp(st.EligibleAt))
	}
	row("started", stamp(st.StartedAt))
	row("finished", stamp(st.FinishedAt))
	return tw.Flush()
}

// remark says on stderr why a job that waits may wait for ever.
func (a *app) remark(ctx context.Context, c job.Client, st job.Status) {
	if st.State != job.StateQueued && st.State != job.StateScheduled {
		return
	}
	if remark := unserved(ctx, c, st.Queue); remark != "" {
		fmt.Fprintln(a.sys.Err, sanitize.Line(remark))
	}
}

func labels(m map[string]string) string {
	var out []string
	for k, v := range m {
		out = append(out, k+"="+v)
	}
	slices.Sort(out)
	return strings.Join(out, " ")
}

func stamp(t time.Time) string {
	if t.IsZero() {
		return ""
	}
	return t.Local().Format(time.RFC3339)
}

// passOver reports whether err is about one entry of a list, which it names then on stderr: the others follow.
func (a *app) passOver(err error) bool {
	if !errors.Is(err, job.ErrUnreadable) {
		return false
	}
	fmt.Fprintln(a.sys.Err, sanitize.Line(err.Error()))
	return true
}
