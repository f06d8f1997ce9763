package main

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"slipway/cmd/internal/contexts"
	"slipway/cmd/internal/display"
	"slipway/cmd/internal/sanitize"
	"slipway/job"
)

const (
	// completeTime bounds what a press of the tab key may take.
	completeTime = time.Second
	// mostCompleted is how many jobs a shell is offered.
	mostCompleted = 50
)

// completion is what the program offers to a shell.
type completion struct{ *app }

// add tells the shell what can follow: jobs, queues, states, contexts and files of jobs. What fails offers nothing:
// a shell has no place for errors.
func (a completion) add(root *cobra.Command) {
	any := func(job.State) bool { return true }
	for _, cmd := range root.Commands() {
		switch cmd.Name() {
		case "status", "logs", "result":
			cmd.ValidArgsFunction = a.completeJobs(any)
		case "cancel":
			cmd.ValidArgsFunction = a.completeJobs(func(s job.State) bool { return !s.Final() })
		case "dead":
			for _, below := range cmd.Commands() {
				if below.Name() != "list" {
					below.ValidArgsFunction = a.completeDead
				}
			}
		case "run", "create", "validate":
			cmd.ValidArgsFunction = cobra.FixedCompletions([]string{"yaml", "yml", "json"}, cobra.ShellCompDirectiveFilterFileExt)
		}
		a.completeFlag(cmd, "queue", a.completeQueues)
		a.completeFlag(cmd, "state", fixed(strings.Split(names(knownStates()), ", ")...))
		a.completeFlag(cmd, "priority", fixed(words(job.Priorities())...))
	}
	_ = root.RegisterFlagCompletionFunc("context", func(cmd *cobra.Command, _ []string, prefix string) ([]string, cobra.ShellCompDirective) {
		return a.completeContexts(cmd, nil, prefix)
	}) // the flag exists
}

func (a completion) completeFlag(cmd *cobra.Command, flag string, complete cobra.CompletionFunc) {
	if cmd.Flags().Lookup(flag) != nil {
		_ = cmd.RegisterFlagCompletionFunc(flag, complete) // the flag exists
	}
}

func fixed(words ...string) cobra.CompletionFunc {
	return cobra.FixedCompletions(words, cobra.ShellCompDirectiveNoFileComp)
}

func words[T ~string](values []T) []string {
	var out []string
	for _, v := range values {
		out = append(out, string(v))
	}
	return out
}

// ask calls do with the queue, and gives both together no more than completeTime.
func (a completion) ask(ctx context.Context, do func(ctx context.Context, c job.Client)) {
	ctx, cancel := context.WithTimeout(ctx, completeTime)
	defer cancel()
	environ, err := a.environ()
	if err != nil || a.set.Resolve(environ, "", nil) != nil {
		return
	}
	client, closeClient, err := a.connect(ctx, a.nats)
	if err != nil {
		return
	}
	defer closeClient()
	do(ctx, client)
}

// completeJobs offers the ids of the newest jobs in a state that counts, each with its state and name.
func (a completion) completeJobs(counts func(job.State) bool) cobra.CompletionFunc {
	return func(cmd *cobra.Command, args []string, prefix string) (ids []string, _ cobra.ShellCompDirective) {
		if len(args) > 0 {
			return nil, cobra.ShellCompDirectiveNoFileComp
		}
		a.ask(cmd.Context(), func(ctx context.Context, c job.Client) {
			for st, err := range c.List(ctx, job.ListQuery{Limit: 10 * mostCompleted}) {
				if err != nil && !errors.Is(err, job.ErrUnreadable) || len(ids) == mostCompleted {
					return
				}
				if err == nil && counts(st.State) && begins(st.ID, prefix) {
					ids = append(ids, offer(st, st.SubmittedAt))
				}
			}
		})
		return ids, cobra.ShellCompDirectiveNoFileComp | cobra.ShellCompDirectiveKeepOrder
	}
}

// completeDead offers the ids of dead jobs.
func (a completion) completeDead(cmd *cobra.Command, args []string, prefix string) (ids []string, _ cobra.ShellCompDirective) {
	if len(args) > 0 {
		return nil, cobra.ShellCompDirectiveNoFileComp
	}
	a.ask(cmd.Context(), func(ctx context.Context, c job.Client) {
		for d, err := range c.DeadLetters(ctx) {
			if err != nil && !errors.Is(err, job.ErrUnreadable) || len(ids) == mostCompleted {
				return
			}
			if err == nil && begins(d.ID, prefix) {
				ids = append(ids, offer(d.Status, d.At))
			}
		}
	})
	return ids, cobra.ShellCompDirectiveNoFileComp | cobra.ShellCompDirectiveKeepOrder
}

// begins reports whether id begins with prefix, which may be typed in lower case.
func begins(id job.ID, prefix string) bool {
	return strings.HasPrefix(string(id), strings.ToUpper(prefix))
}

// offer is an id with what the shell shows beside it.
func offer(st job.Status, at time.Time) string {
	about := strings.TrimSpace(fmt.Sprintf("%s %s %s", st.State, display.Ago(at, time.Now()), sanitize.Line(st.Name)))
	return string(st.ID) + "\t" + strings.ReplaceAll(about, "\t", " ")
}

// completeQueues offers the queues that a living worker serves.
func (a completion) completeQueues(cmd *cobra.Command, _ []string, _ string) (queues []string, _ cobra.ShellCompDirective) {
	a.ask(cmd.Context(), func(ctx context.Context, c job.Client) {
		queues, _ = served(ctx, c)
	})
	slices.Sort(queues)
	return slices.Compact(queues), cobra.ShellCompDirectiveNoFileComp
}

// completeContexts offers the names of contexts.
func (a completion) completeContexts(_ *cobra.Command, args []string, _ string) ([]string, cobra.ShellCompDirective) {
	s, err := contexts.Open(a.sys.Environ)
	if err != nil || len(args) > 0 {
		return nil, cobra.ShellCompDirectiveNoFileComp
	}
	names, _ := s.Names()
	return names, cobra.ShellCompDirectiveNoFileComp
}
