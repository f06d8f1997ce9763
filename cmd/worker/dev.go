package main

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"slipway/cmd/internal/cli"
	"slipway/job"
	"slipway/metrics"
)

const devLong = `dev starts everything that slipway needs on this machine: a nats-server and an S3 gateway on a
data folder, and a worker with an open policy. The servers are the programs slipway-devserver-nats and
slipway-devserver-s3 beside this one. dev prints how to submit a job.

All listens on loopback: NATS on 4222, S3 on 7070, metrics on 9464, or on a free port if one is
taken. What was queued and stored is there again at the next start on the same folder, with the
same keys of the store. The open policy lets jobs ask for network, root and as much memory as they
like: it is for your own jobs on your own machine.`

func newDev(a *app) *cobra.Command {
	cmd := &cobra.Command{
		Use: "dev", Short: "Queue, store and worker on this machine, for trying out", Args: cobra.NoArgs,
		Long: devLong,
		Example: `  worker dev
  worker dev --data /tmp/slipway --slots 4`,
	}
	t := addToolConfig(cmd, "info", "data `folder`; default: ~/.local/share/slipway, or .slipway here",
		"slipway-devserver-nats and slipway-devserver-s3, which are the queue and the store")
	addSlots(t.set, &t.slots)
	var softStop time.Duration
	addSoftStop(t.set, &softStop, 10*time.Second, "Ctrl-C")
	cmd.RunE = func(cmd *cobra.Command, _ []string) error {
		if err := t.load(a.sys.Environ); err != nil {
			return err
		}
		return a.dev(cmd.Context(), t, softStop)
	}
	return cmd
}

func (a *app) dev(ctx context.Context, t *toolConfig, softStop time.Duration) (err error) {
	log := newLogger(t.log, a.sys.Err)
	startCtx, started := a.sys.Interruptible(ctx)
	defer started()
	dir := t.data
	if dir == "" {
		dir = defaultData()
	}
	provider, err := t.provider(startCtx)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, provider.Close()) }()
	d, err := openDevServices(startCtx, dir, job.DefaultQueue, t.devserver, true)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, d.close()) }()
	s := d.service("dev")
	s.provider, s.softStop, s.log = provider, softStop, log
	s.say = func(format string, args ...any) { fmt.Fprintf(a.sys.Err, format+"\n", args...) }
	t.apply(s)
	if s.listener, err = metrics.Listen(startCtx, freeAddr(startCtx, metrics.DefaultAddr)); err != nil {
		return err
	}
	defer s.listener.Close()
	a.welcome(d, t, s.listener.Addr())
	started()
	ctx, stop := d.guard(ctx)
	defer stop()
	err = s.run(ctx, a.sys.Interrupts)
	return errors.Join(endedBy(ctx), err)
}

// defaultData is the folder of worker dev.
func defaultData() string {
	if dir := os.Getenv("XDG_DATA_HOME"); filepath.IsAbs(dir) {
		return filepath.Join(dir, "slipway")
	}
	if home, err := os.UserHomeDir(); err == nil {
		return filepath.Join(home, ".local", "share", "slipway")
	}
	return ".slipway"
}

func (a *app) welcome(d *devServices, t *toolConfig, metricsAddr net.Addr) {
	say := func(format string, args ...any) { fmt.Fprintf(a.sys.Out, format+"\n", args...) }
	say("slipway dev, on %s", d.dir)
	say("  queue    %s", d.servers.NATSURL)
	say("  store    %s  bucket %s, access key %s, secret key %s", d.servers.Endpoint, devBucket, d.servers.AccessKey, d.servers.SecretKey)
	say("  metrics  http://%s/metrics", metricsAddr)
	for _, moved := range movedFrom(d.servers.NATSURL, d.servers.Endpoint, metricsAddr.String()) {
		say("  note     %s", moved)
	}
	t.confess(func(format string, args ...any) { say("  note     "+format, args...) })
	at := ""
	if url := d.servers.NATSURL; url != cli.DefaultNATS {
		at = " --nats-url " + url
	}
	say("Submit a job from another terminal:")
	say("  %s run%s examples/hello.yaml", submitPath(), at)
	say("  %s list%s", submitPath(), at)
	say("Ctrl-C ends it: once drains, twice stops at once.")
}

// movedFrom tells which of dev's usual addresses are taken, so that it listens elsewhere.
func movedFrom(queue, store, metricsAddr string) (notes []string) {
	for _, part := range []struct{ name, want, at string }{
		{"queue", devNATSAddr, queue}, {"store", devS3Addr, store}, {"metrics", metrics.DefaultAddr, metricsAddr},
	} {
		if !strings.HasSuffix(part.at, part.want) {
			notes = append(notes, fmt.Sprintf("%s is taken, perhaps by another worker dev, so the address of the %s above is another one than usual", part.want, part.name))
		}
	}
	return notes
}

// submitPath is how to call the program submit: as it lies beside this one, if it does.
func submitPath() string {
	self, err := os.Executable()
	if err != nil {
		return "submit"
	}
	path := filepath.Join(filepath.Dir(self), "submit"+filepath.Ext(self))
	if _, err := os.Stat(path); err != nil {
		return "submit"
	}
	if wd, err := os.Getwd(); err == nil {
		if rel, err := filepath.Rel(wd, path); err == nil && filepath.IsLocal(rel) && filepath.Dir(rel) != "." {
			return rel
		}
	}
	return path
}
