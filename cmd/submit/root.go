package main

import (
	"context"
	"fmt"
	"time"

	"github.com/spf13/cobra"

	"slipway/cmd/internal/cli"
	"slipway/cmd/internal/contexts"
	"slipway/cmd/internal/exit"
	"slipway/cmd/internal/sanitize"
	"slipway/cmd/internal/settings"
	"slipway/job"
)

// app is what all commands share.
type app struct {
	sys  cli.System
	nats cli.NATS
	set  *settings.Set
	// context is the flag --context.
	context string
	// connect opens the queue. Tests put an in-memory one here.
	connect func(ctx context.Context, n cli.NATS) (job.Client, func(), error)
}

func connectNATS(ctx context.Context, n cli.NATS) (job.Client, func(), error) {
	ctx, cancel := context.WithTimeout(ctx, 10*time.Second)
	defer cancel()
	conn, err := n.Connect(ctx, "submit")
	if err != nil {
		return nil, nil, err
	}
	return conn.Client(), conn.Close, nil
}

const rootLong = `submit puts jobs into slipway's queue, follows them, and shows their results.

A job is a YAML or JSON file; docs/job.md explains its fields, submit schema prints its
JSON Schema, and submit validate checks one. Where a FILE is asked for, - is stdin.

Every flag that says where the queue is can be a variable instead:
--nats-url is SLIPWAY_NATS_URL, and so on. Flags win over variables, and these over
submit context, which remembers where queues are.`

const rootExample = `  submit run hello.yaml                    submit, follow live, exit with the job's outcome
  id=$(submit create hello.yaml)           submit only
  submit logs -f $id                       follow it later
  submit result --wait $id                 wait for what came of it
  submit list --state running,queued       what is going on
  submit run -o json hello.yaml | tail -1  the result, for scripts`

func newRoot(a *app) *cobra.Command {
	root := &cobra.Command{
		Use: "submit", Short: "Submit jobs to slipway and see what comes of them",
		Long: rootLong + "\n\n" + exit.Help, Example: rootExample, Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error { return cmd.Help() },
	}
	a.set = settings.New(root.PersistentFlags())
	a.nats.Register(a.set)
	root.PersistentFlags().StringVar(&a.context, "context", "", "use the settings of this `context`, in place of the one in use (SLIPWAY_CONTEXT)")
	root.AddCommand(
		newRun(a), newCreate(a), newStatus(a), newList(a), newLogs(a), newResult(a), newCancel(a),
		newDead(a), newContext(a), newValidate(a), newSchema(),
	)
	cli.AddVersion(root)
	completion{a}.add(root)
	return root
}

// withClient opens the queue for the time of do. The next interrupt ends do's context.
func (a *app) withClient(cmd *cobra.Command, do func(ctx context.Context, c job.Client) error) error {
	ctx, stop := a.sys.Interruptible(cmd.Context())
	defer stop()
	return a.open(ctx, func(c job.Client) error { return do(ctx, c) })
}

// open opens the queue for the time of do.
func (a *app) open(ctx context.Context, do func(c job.Client) error) error {
	environ, err := a.environ()
	if err != nil {
		return err
	}
	if err := a.set.Resolve(environ, "", nil); err != nil {
		return exit.UsageError(err)
	}
	for _, v := range a.set.UnknownEnv(a.sys.Environ) {
		if v.Meant != "" && v.Name != contexts.Variable && v.Name != queueVariable { // any other one may be a worker's on the same machine
			fmt.Fprintln(a.sys.Err, sanitize.Line(v.String()))
		}
	}
	client, closeClient, err := a.connect(ctx, a.nats)
	if err != nil {
		return err
	}
	defer closeClient()
	return a.nats.Explain(do(client))
}
