package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"
	"syscall"
	"time"

	"github.com/spf13/cobra"

	"slipway/cmd/internal/cli"
	"slipway/cmd/internal/display"
	"slipway/cmd/internal/exit"
	"slipway/cmd/internal/sanitize"
	"slipway/container"
	"slipway/container/docker"
	"slipway/internal/hint"
	"slipway/job"
)

const doctorLong = `doctor looks at everything that a worker needs, with the settings that serve would use, and says for
each whether it is well and what to do if not: the engine and its version, a box that is really
made, the rights on the queue, the bucket, the clocks, the address of the metrics.

It only looks: streams and lanes of the queue that are missing are a warning, since worker serve makes
them at its start; the rights to make them show then. With --setup doctor makes them itself, as serve
would. Limits of streams that are not as the settings say are a warning, too: no worker changes them.
With --set-limits doctor does.

Each line is ok, warn or fail. Exit code 1 if one fails; settings that make no sense end it before,
with 2. With --output json every line is
{"check":…,"status":…,"detail":…,"advice":…}.`

// status says how a check went.
type status string

const (
	ok   status = "ok"
	warn status = "warn"
	fail status = "fail"
)

// finding is what one check found.
type finding struct {
	Check  string `json:"check"`
	Status status `json:"status"`
	Detail string `json:"detail"`
	Advice string `json:"advice,omitempty"`
}

func newDoctor(a *app) *cobra.Command {
	cmd := &cobra.Command{
		Use: "doctor", Short: "Check everything that a worker needs, and say what to do", Args: cobra.NoArgs,
		Long: doctorLong, Example: "  worker doctor --config /etc/slipway/worker.yaml",
	}
	c := addConfig(cmd.Flags())
	output := cli.AddOutput(cmd)
	setup := cmd.Flags().Bool("setup", false, "make what is missing of the queue's streams, as serve does at its start")
	setLimits := cmd.Flags().Bool("set-limits", false, "bring the limits of the queue's streams to the settings; smaller ones delete what no longer fits")
	image := cmd.Flags().String("image", "busybox:1.36", "image to make a box of; it must be on the engine")
	cmd.RunE = func(cmd *cobra.Command, _ []string) error {
		if err := c.load(a.sys.Environ); err != nil {
			return err
		}
		ctx, stop := a.sys.Interruptible(cmd.Context())
		defer stop()
		d := &doctor{config: c, image: *image, setup: *setup, setLimits: *setLimits, report: a.reporter(*output)}
		d.settings(a.sys.Environ)
		d.engine(ctx)
		d.queue(ctx)
		d.store(ctx)
		d.metrics(ctx)
		if ctx.Err() != nil {
			return context.Cause(ctx)
		}
		if d.failed {
			return exit.Silent(exit.Failed)
		}
		return nil
	}
	return cmd
}

// reporter prints findings as they come.
func (a *app) reporter(output cli.Output) func(finding) {
	if output == cli.JSON {
		enc := json.NewEncoder(a.sys.Out)
		return func(f finding) { _ = enc.Encode(f) } // a reader that went away ends us by SIGPIPE
	}
	return func(f finding) { printFinding(a.sys.Out, f) }
}

func printFinding(w io.Writer, f finding) {
	fmt.Fprintf(w, "%-4s  %-8s  %s\n", f.Status, f.Check, indent(f.Detail))
	if f.Advice != "" {
		fmt.Fprintf(w, "                %s\n", indent("→ "+f.Advice))
	}
}

func indent(s string) string {
	return strings.ReplaceAll(strings.TrimSpace(sanitize.Text(s)), "\n", "\n                ")
}

// doctor runs the checks. One that fails doesn't keep the others from running.
type doctor struct {
	config *config
	image  string
	setup  bool // make what the queue lacks
	// setLimits changes the limits of streams that exist.
	setLimits bool
	report    func(finding)
	failed    bool
}

func (d *doctor) say(check string, s status, detail, advice string) {
	d.failed = d.failed || s == fail
	d.report(finding{Check: check, Status: s, Detail: detail, Advice: advice})
}

func (d *doctor) sayError(check string, err error) { d.say(check, fail, err.Error(), hint.Of(err)) }

func (d *doctor) settings(environ []string) {
	for _, v := range d.config.unknownEnv(environ) {
		d.say("settings", warn, v.String(), "worker config lists all settings")
	}
	if d.config.policy.file == "" {
		d.say("policy", ok, "closed: no policy file is set", "")
		return
	}
	d.say("policy", ok, d.config.policy.file, "")
}

func (d *doctor) engine(ctx context.Context) {
	p, err := d.config.docker.open(ctx)
	if err != nil {
		d.sayError("engine", err)
		return
	}
	defer p.Close()
	e, err := p.Engine(ctx)
	if err != nil {
		d.sayError("engine", err)
		return
	}
	d.say("engine", ok, fmt.Sprintf("Docker %s, API %s, %s/%s, %d processors, %s of memory, at %s",
		e.Version, e.API, e.OS, e.Arch, e.CPUs, display.Size(e.Memory), e.Host), "")
	for _, w := range e.Warnings {
		d.say("engine", warn, w, "")
	}
	d.box(ctx, p)
}

// box makes a real one, with the defaults of the worker's policy, and runs a command in it.
func (d *doctor) box(ctx context.Context, p *docker.Provider) {
	ctx, cancel := context.WithTimeout(ctx, time.Minute)
	defer cancel()
	image, err := p.Prepare(ctx, container.ImageRequest{Image: d.image, Pull: container.PullNever})
	if errors.Is(err, container.ErrImageNotFound) {
		d.say("box", warn, "not tried: the engine has no image "+d.image, "docker pull "+d.image+", or name with --image one that is there and has /bin/true")
		return
	}
	if err != nil {
		d.sayError("box", err)
		return
	}
	begun := time.Now()
	took, err := d.tryBox(ctx, p, image)
	if err != nil {
		d.say("box", fail, err.Error(), "what the engine says about it: docker events, and the daemon's log")
		return
	}
	d.say("box", ok, fmt.Sprintf("made of %s: first command after %s, gone after %s", d.image, display.Short(took), display.Short(time.Since(begun))), "")
}

func (d *doctor) tryBox(ctx context.Context, p *docker.Provider, image container.Image) (first time.Duration, err error) {
	spec, err := d.config.policy.policy.Apply(container.Spec{
		Name: "slipway-doctor-" + strings.ToLower(string(job.NewID())), Image: image.ID, Resources: d.config.policy.defaults, Lifetime: time.Minute,
		Labels: map[string]string{container.LabelProduct: container.Product, container.LabelWorker: "doctor"},
	})
	if err != nil {
		return 0, err
	}
	begun := time.Now()
	box, err := p.Create(ctx, spec)
	if err != nil {
		return 0, err
	}
	defer func() {
		ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), 30*time.Second)
		defer cancel()
		err = errors.Join(err, box.Remove(ctx))
	}()
	if err := box.Start(ctx); err != nil {
		return 0, err
	}
	got, err := box.Exec(ctx, container.Command{Args: []string{"/bin/true"}, Timeout: 30 * time.Second})
	switch {
	case err != nil:
		return 0, err
	case !got.Success():
		return 0, fmt.Errorf("/bin/true ended with exit code %d %s", got.Code, got.Error)
	}
	return time.Since(begun), nil
}

func (d *doctor) store(ctx context.Context) {
	c := &d.config.s3
	if c.Bucket == "" {
		d.say("store", warn, "none: jobs with a workspace are refused, and long logs are lost", "set --s3-endpoint and --s3-bucket (SLIPWAY_S3_ENDPOINT, SLIPWAY_S3_BUCKET)")
		return
	}
	store, err := c.open(ctx)
	if err != nil {
		d.sayError("store", err)
		return
	}
	defer store.Close()
	d.say("store", ok, "bucket "+c.Bucket+" honors conditions, checks bodies, and returns what was written", "")
	d.clock(ctx)
}

// metrics tells whether the address is free. A worker of these settings that runs has taken it, which is how it should be.
func (d *doctor) metrics(ctx context.Context) {
	addr := d.config.metricsAddr
	listener, err := d.config.listen(ctx)
	switch {
	case errors.Is(err, syscall.EADDRINUSE):
		d.say("metrics", warn, addr+" is taken", "if a worker with these settings runs here, that is right. Else another program has it: "+hint.Of(err))
	case err != nil:
		d.sayError("metrics", err)
	case listener == nil:
		d.say("metrics", ok, "none are served: metrics.addr is off", "")
	default:
		listener.Close()
		d.say("metrics", ok, addr+" is free", "")
	}
}

// Clock differences: S3 refuses signatures that are 15 min off; not_before and
// the ages of things are wrong by as much as the clock is.
const (
	clockWarn = 2 * time.Second
	clockFail = 5 * time.Minute
)

// clock compares ours with that of the store.
func (d *doctor) clock(ctx context.Context) {
	if d.config.s3.Endpoint == "" {
		return
	}
	begun := time.Now()
	req, err := http.NewRequestWithContext(ctx, http.MethodHead, d.config.s3.Endpoint, nil)
	if err != nil {
		return // s3store has accepted it, so this can't be
	}
	client := http.Client{Timeout: 5 * time.Second}
	defer client.CloseIdleConnections()
	res, err := client.Do(req)
	if err != nil {
		d.sayError("clock", err)
		return
	}
	res.Body.Close()
	theirs, err := http.ParseTime(res.Header.Get("Date"))
	if err != nil {
		d.say("clock", warn, "the store does not tell its time", "")
		return
	}
	d.say(judgeClock(begun.Add(time.Since(begun)/2), theirs))
}

// judgeClock compares our time with theirs, which knows whole seconds.
func judgeClock(ours, theirs time.Time) (check string, s status, detail, advice string) {
	off := ours.Sub(theirs.Add(500 * time.Millisecond)).Abs()
	detail = fmt.Sprintf("the store's clock and ours differ by about %s", display.Short(max(off-500*time.Millisecond, 0)))
	switch {
	case off > clockFail:
		return "clock", fail, detail, "set the clock of this machine or of the store's: with 15 minutes every request is refused"
	case off > clockWarn:
		return "clock", warn, detail, "run an NTP client on both machines"
	}
	return "clock", ok, detail, ""
}
