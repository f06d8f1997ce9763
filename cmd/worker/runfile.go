package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"os"
	"time"

	"github.com/spf13/cobra"

	"slipway/cmd/internal/cli"
	"slipway/cmd/internal/display"
	"slipway/cmd/internal/exit"
	"slipway/cmd/internal/watch"
	"slipway/container"
	"slipway/job"
)

const runLong = `run runs the job in FILE from start to end on this machine, shows it live, and ends with the exit
code of its outcome. Nothing has to be installed or started but a container engine: the queue is in
the program slipway-devserver-nats beside this one, and the store is a folder. The data of both is
removed at the end, or kept in the folder of --data. That can't be a folder of worker dev, whose
store is an S3 gateway's.

The policy is open: the job may ask for network, root and any amount of memory. Without an
engine, --allow-local runs the steps unisolated, as plain processes of yours (Linux only).

Interrupt (Ctrl-C, SIGTERM): the first cancels the job (steps with "if: always" still run, and a
workspace with "push: always" is saved), the second aborts it, the third ends this program at once.

The output is that of submit run, with --output json too.`

func newRun(a *app) *cobra.Command {
	cmd := &cobra.Command{
		Use: "run FILE", Short: "Run one job from start to end, without anything around it",
		Long: runLong + "\n\n" + exit.Help, Args: cli.OneArg("FILE"),
		Example: `  worker run hello.yaml
  worker run --data ./data --env SEED=3 test.yaml   # the workspace is there the next time
  worker run --allow-local - < job.yaml`,
	}
	t := addToolConfig(cmd, "warn", "keep queue, workspaces and logs in this `folder`; default: a temporary one",
		"slipway-devserver-nats, which is the queue")
	t.slots = 1
	overrides := cli.AddOverrides(cmd.Flags())
	output := cli.AddOutput(cmd)
	raw := cmd.Flags().Bool("raw", false, "pass the job's output on as it is, escape sequences included")
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		if err := t.load(a.sys.Environ); err != nil {
			return err
		}
		j, err := a.sys.ReadJob(args[0])
		if err != nil {
			return err
		}
		if err := overrides.Apply(j, time.Now()); err != nil {
			return err
		}
		return a.runFile(cmd.Context(), t, j, a.sys.Printer(*output, *raw))
	}
	return cmd
}

func (a *app) runFile(ctx context.Context, t *toolConfig, j *job.Job, p display.Printer) (err error) {
	dir := t.data
	if dir == "" {
		if dir, err = os.MkdirTemp("", "slipway-run-"); err != nil {
			return fmt.Errorf("make a data folder: %w; choose one with --data", err)
		}
		defer func() { err = errors.Join(err, os.RemoveAll(dir)) }()
	}
	startCtx, started := a.sys.Interruptible(ctx)
	defer started()
	provider, err := t.provider(startCtx)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, provider.Close()) }()
	d, err := openDevServices(startCtx, dir, cmp.Or(j.Queue, job.DefaultQueue), t.devserver, false)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, d.close()) }()
	started()
	ctx, stop := d.guard(ctx)
	defer stop()
	result, err := a.oneJob(ctx, t, d, provider, j, p)
	if err != nil {
		return err
	}
	return exit.Silent(exit.Outcome(result.Outcome))
}

// oneJob runs a worker until the result of j is there.
func (a *app) oneJob(ctx context.Context, t *toolConfig, d *devServices, provider container.Provider, j *job.Job, p display.Printer) (*job.Result, error) {
	log := newLogger(t.log, a.sys.Err)
	s := d.service("run")
	s.provider, s.log, s.say = provider, log, p.Note
	s.liveShare = 4 // the queue has this job, and those of earlier runs with the same --data
	if t.data == "" {
		s.storeName = "" // the folder is removed at the end
	}
	s.softStop = 0 // when we stop, the job has its result, or nobody waits for it
	t.apply(s)
	client := d.conn.Client()
	if err := client.Submit(ctx, j); err != nil && !errors.Is(err, job.ErrExists) {
		return nil, fmt.Errorf("submit job %s: %w", j.ID, err)
	}
	t.confess(p.Note)
	p.Submitted(j)

	followCtx, giveUp := context.WithCancelCause(ctx)
	defer giveUp(nil)
	workerCtx, stop := context.WithCancel(ctx)
	defer stop()
	ended := make(chan error, 1)
	go func() {
		err := s.run(workerCtx, nil)
		if workerCtx.Err() == nil {
			giveUp(errors.Join(errWorkerEnded, err))
		}
		ended <- err
	}()
	result, err := watch.Interruptible(followCtx, client, j.ID, p, a.sys.Interrupts, "ends this program")
	stop()
	if errors.Is(err, watch.ErrDetached) {
		err = cli.ErrInterrupted
	}
	return result, errors.Join(err, <-ended)
}

// errWorkerEnded: the worker gave up before the job had a result.
var errWorkerEnded = errors.New("the worker ended before the job")
