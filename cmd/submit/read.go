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
	"slipway/cmd/internal/exit"
	"slipway/cmd/internal/sanitize"
	"slipway/cmd/internal/watch"
	"slipway/job"
	"slipway/job/natsqueue"
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
			return printStatus(a.sys.Out, st)
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

func newList(a *app) *cobra.Command {
	cmd := &cobra.Command{
		Use: "list", Short: "List jobs, the newest first", Args: cobra.NoArgs,
		Long: `list shows jobs, the newest first.
With --output json every line is the record of one job, as submit status -o json prints it.`,
		Example: "  submit list --queue nightly --state failed,errored,timed_out --limit 20",
	}
	queue := cmd.Flags().String("queue", "", "only jobs of this queue")
	states := cmd.Flags().StringSlice("state", nil, "only jobs in these states: scheduled, queued, running, done, failed, timed_out, canceled, errored")
	limit := cmd.Flags().Int("limit", 100, "at most so many jobs")
	output := cli.AddOutput(cmd)
	cmd.RunE = func(cmd *cobra.Command, _ []string) error {
		q := job.ListQuery{Queue: *queue, Limit: *limit}
		var err error
		if q.States, err = parseStates(*states); err != nil {
			return err
		}
		if err := natsqueue.CheckQueues([]string{*queue}); *queue != "" && err != nil {
			return exit.Usagef("--queue: %w", err)
		}
		if *limit < 1 {
			return exit.Usagef("--limit %d: must be at least 1", *limit)
		}
		return a.withClient(cmd, func(ctx context.Context, c job.Client) error {
			return a.list(ctx, c, q, *output)
		})
	}
	return cmd
}

func parseStates(words []string) ([]job.State, error) {
	known := []job.State{
		job.StateScheduled, job.StateQueued, job.StateRunning, job.StateDone,
		job.StateFailed, job.StateTimedOut, job.StateCanceled, job.StateErrored,
	}
	var out []job.State
	for _, w := range words {
		s := job.State(w)
		if w == string(job.Succeeded) {
			s = job.StateDone
		}
		if !slices.Contains(known, s) {
			return nil, exit.Usagef("--state %q: no such state; the states are %s", w, names(known))
		}
		out = append(out, s)
	}
	return out, nil
}

func names(states []job.State) string {
	out := make([]string, len(states))
	for i, s := range states {
		out[i] = string(s)
	}
	return strings.Join(out, ", ")
}

func (a *app) list(ctx context.Context, c job.Client, q job.ListQuery, output cli.Output) error {
	tw := tabwriter.NewWriter(a.sys.Out, 0, 4, 2, ' ', 0)
	enc := json.NewEncoder(a.sys.Out)
	if output == cli.Text {
		fmt.Fprintln(tw, "ID\tSTATE\tREASON\tQUEUE\tATTEMPT\tSUBMITTED\tNAME")
	}
	for st, err := range c.List(ctx, q) {
		if a.passOver(err) {
			continue
		}
		if err != nil {
			return errors.Join(tw.Flush(), err)
		}
		if output == cli.JSON {
			if err := enc.Encode(st); err != nil {
				return err
			}
			continue
		}
		fmt.Fprintf(tw, "%s\t%s\t%s\t%s\t%d\t%s\t%s\n", st.ID, sanitize.Line(string(st.State)), sanitize.Line(string(st.Reason)), sanitize.Line(st.Queue),
			st.Attempt, stamp(st.SubmittedAt), sanitize.Line(st.Name))
	}
	return tw.Flush()
}

// passOver reports whether err is about one entry of a list, which it names then on stderr: the others follow.
func (a *app) passOver(err error) bool {
	if !errors.Is(err, job.ErrUnreadable) {
		return false
	}
	fmt.Fprintln(a.sys.Err, sanitize.Line(err.Error()))
	return true
}

func newLogs(a *app) *cobra.Command {
	cmd := &cobra.Command{
		Use: "logs ID", Short: "Show what a job printed", Args: cli.OneArg("ID"),
		Long: `logs shows the events of a job that are still kept, its output among them. Like run, it writes
the job's stdout to stdout and the rest to stderr. With -f it goes on until the job ends,
and ends with the exit code of its outcome; an interrupt leaves the job alone.
With --output json the lines are those of submit run -o json, the result only with -f.`,
		Example: "  submit logs -f 01JF8ZQ3K4M5N6P7Q8R9S0T1V2",
	}
	follow := cmd.Flags().BoolP("follow", "f", false, "go on until the job ends")
	output := cli.AddOutput(cmd)
	raw := cmd.Flags().Bool("raw", false, "pass the job's output on as it is, escape sequences included")
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		ids, err := cli.ParseIDs(args)
		if err != nil {
			return err
		}
		return a.withClient(cmd, func(ctx context.Context, c job.Client) error {
			if _, err := c.Status(ctx, ids[0]); err != nil {
				return explainUnknown(err)
			}
			p := a.sys.Printer(*output, *raw)
			if !*follow {
				return watch.Stored(ctx, c, ids[0], p)
			}
			r, err := watch.Job(ctx, c, ids[0], p)
			if err != nil {
				return fmt.Errorf("logs of %s: %w", ids[0], err)
			}
			return exit.Silent(exit.Outcome(r.Outcome))
		})
	}
	return cmd
}
