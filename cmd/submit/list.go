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
	"slipway/cmd/internal/display"
	"slipway/cmd/internal/exit"
	"slipway/cmd/internal/sanitize"
	"slipway/job"
	"slipway/job/natsqueue"
)

// listFlags are the flags that narrow a list.
type listFlags struct {
	queue, since   string
	states, labels []string
	limit          int
}

func newList(a *app) *cobra.Command {
	cmd := &cobra.Command{
		Use: "list", Short: "List jobs, the newest first", Args: cobra.NoArgs,
		Long: `list shows jobs, the newest first: ids begin with the time at which they were made. Where there are more than
--limit, it says so on stderr.
With --output json every line is the record of one job, as submit status -o json prints it.`,
		Example: `  submit list --queue nightly --state failed,errored,timed_out --limit 20
  submit list --label team=web --since 24h`,
	}
	var f listFlags
	cmd.Flags().StringVar(&f.queue, "queue", "", "only jobs of this queue")
	cmd.Flags().StringSliceVar(&f.states, "state", nil, "only jobs in these states: scheduled, queued, running, done, failed, timed_out, canceled, errored")
	cmd.Flags().StringArrayVar(&f.labels, "label", nil, "only jobs with this label, `key=value`; may be repeated, for jobs with all of them")
	cmd.Flags().StringVar(&f.since, "since", "", "only jobs submitted since this `time`: RFC 3339, or a duration before now such as 24h or 7d")
	cmd.Flags().IntVar(&f.limit, "limit", 100, "at most so many jobs")
	output := cli.AddOutput(cmd)
	cmd.RunE = func(cmd *cobra.Command, _ []string) error {
		q, err := f.query(time.Now())
		if err != nil {
			return err
		}
		return a.withClient(cmd, func(ctx context.Context, c job.Client) error {
			return a.list(ctx, c, q, *output)
		})
	}
	return cmd
}

// query checks the flags.
func (f listFlags) query(now time.Time) (q job.ListQuery, err error) {
	q = job.ListQuery{Queue: f.queue, Limit: f.limit}
	if q.States, err = parseStates(f.states); err != nil {
		return q, err
	}
	if q.Labels, err = cli.Pairs("--label", f.labels); err != nil {
		return q, err
	}
	if f.since != "" {
		if q.Since, err = cli.Past("--since", f.since, now); err != nil {
			return q, err
		}
	}
	if err := natsqueue.CheckQueues([]string{f.queue}); f.queue != "" && err != nil {
		return q, exit.Usagef("--queue: %w", err)
	}
	if f.limit < 1 {
		return q, exit.Usagef("--limit %d: must be at least 1", f.limit)
	}
	return q, nil
}

func knownStates() []job.State {
	return []job.State{
		job.StateScheduled, job.StateQueued, job.StateRunning, job.StateDone,
		job.StateFailed, job.StateTimedOut, job.StateCanceled, job.StateErrored,
	}
}

func parseStates(words []string) ([]job.State, error) {
	known := knownStates()
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

// tableRows is how many rows of a list share their columns. A longer list is printed part by part, since a table keeps all
// its rows until they are printed.
const tableRows = 1000

func (a *app) list(ctx context.Context, c job.Client, q job.ListQuery, output cli.Output) error {
	limit, shown, now := q.Limit, 0, time.Now()
	q.Limit++ // one more tells whether there are more
	enc := json.NewEncoder(a.sys.Out)
	table := newTable(a.sys.Out, "ID\tSTATE\tREASON\tQUEUE\tATTEMPT\tSUBMITTED\tNAME\tLABELS")
	for st, err := range c.List(ctx, q) {
		if a.passOver(err) {
			continue
		}
		if err != nil {
			return errors.Join(table.end(false), err)
		}
		if shown++; shown > limit {
			break
		}
		if output == cli.JSON {
			err = enc.Encode(st)
		} else {
			err = table.row("%s\t%s\t%s\t%s\t%d\t%s\t%s\t%s\n", st.ID, sanitize.Line(string(st.State)), sanitize.Line(string(st.Reason)), sanitize.Line(st.Queue),
				st.Attempt, display.Ago(st.SubmittedAt, now), sanitize.Line(st.Name), sanitize.Line(labels(st.Labels)))
		}
		if err != nil {
			return err
		}
	}
	if err := table.end(output == cli.Text); err != nil {
		return err
	}
	if shown > limit {
		fmt.Fprintf(a.sys.Err, "there are more than these %d: --limit shows more of them, --queue, --state, --label and --since fewer\n", limit)
	}
	return nil
}

// table prints rows below a header, which comes with the first of them: an error has none above it.
type table struct {
	tw     *tabwriter.Writer
	header string
	rows   int
}

func newTable(out io.Writer, header string) *table {
	return &table{tw: tabwriter.NewWriter(out, 0, 4, 2, ' ', 0), header: header}
}

// row prints a row. The parts of a long table reach the reader one by one.
func (t *table) row(format string, args ...any) error {
	t.begin()
	fmt.Fprintf(t.tw, format, args...)
	if t.rows++; t.rows%tableRows == 0 {
		return t.tw.Flush()
	}
	return nil
}

func (t *table) begin() {
	if t.header != "" {
		fmt.Fprintln(t.tw, t.header)
		t.header = ""
	}
}

// end prints what is left. empty: a table without rows has its header, too.
func (t *table) end(empty bool) error {
	if empty {
		t.begin()
	}
	return t.tw.Flush()
}
