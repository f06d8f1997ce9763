package main

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"slipway/job"
	"slipway/job/natsqueue"
)

// queue looks at the queue. It makes nothing unless it was told to: what a mistyped prefix or queue makes stays on the server.
func (d *doctor) queue(ctx context.Context) {
	ctx, cancel := context.WithTimeout(ctx, 30*time.Second)
	defer cancel()
	d.config.nats.Worker.Queues = d.config.queues
	conn, err := d.config.nats.Connect(ctx, "doctor")
	if err != nil {
		d.sayError("queue", err)
		return
	}
	defer conn.Close()
	defer d.room(ctx, conn) // after the verdict on the queue, which may be that it is full
	missing, err := lookAtQueue(ctx, conn, d.config.nats.Prefix)
	verb := "are there"
	if d.setup {
		if missing != "" {
			verb = "were made, or completed"
		}
		if err := makeStreams(ctx, conn); err != nil {
			d.sayError("queue", err)
			return
		}
		missing, err = lookAtQueue(ctx, conn, d.config.nats.Prefix)
	}
	if err == nil && missing == "" && !d.limits(ctx, conn) {
		return
	}
	switch {
	case err != nil:
		d.sayError("queue", d.config.nats.Explain(err))
	case missing != "":
		d.say("queue", warn, missing, "worker serve makes what is missing at its start, and worker doctor --setup now; "+
			"if workers have served this queue before, --nats-prefix (SLIPWAY_NATS_PREFIX) or --queues (SLIPWAY_QUEUES) is mistyped")
	default:
		detail := fmt.Sprintf("streams of prefix %s %s, for %s", d.config.nats.Prefix, verb, strings.Join(d.config.queues, ", "))
		d.say("queue", ok, detail, "")
	}
}

// room tells how much room the queue uses of what it may, and whether that leaves a reserve for jobs that were accepted.
func (d *doctor) room(ctx context.Context, conn *natsqueue.Conn) {
	uses, err := conn.StoreUse(ctx)
	if err != nil {
		d.sayError("room", d.config.nats.Explain(err))
		return
	}
	var boundless, near, all []string
	for _, u := range uses {
		all = append(all, u.String())
		if u.MaxBytes == 0 {
			boundless = append(boundless, u.Stream)
		}
		if u.NearlyFull() {
			near = append(near, u.Stream)
		}
	}
	if len(uses) == 0 {
		return
	}
	lines := strings.Join(all, "\n")
	switch {
	case len(near) > 0:
		d.say("room", warn, "nearly full: "+strings.Join(near, ", ")+"\n"+lines,
			"a stream that is full takes no more: make room (submit cancel, submit dead drop), or raise its limit and run worker doctor --set-limits")
	case len(boundless) > 0:
		d.say("room", warn, "no reserve: "+strings.Join(boundless, ", ")+" may take the room that claims, commits and cancels need\n"+lines,
			"worker doctor --set-limits gives every stream its limit")
	default:
		d.say("room", ok, lines, "")
	}
}

// limits tells where the streams' limits are not as the settings say, and changes them if it was told to. It reports whether
// they are in order now.
func (d *doctor) limits(ctx context.Context, conn *natsqueue.Conn) bool {
	differ, err := conn.Limits(ctx)
	if err == nil && len(differ) > 0 && d.setLimits {
		err = conn.SetLimits(ctx)
	}
	if err != nil {
		d.sayError("queue", explainSetup(err))
		return false
	}
	if len(differ) == 0 || d.setLimits {
		return true
	}
	lines := make([]string, len(differ))
	loses := ""
	for i, l := range differ {
		lines[i] = fmt.Sprintf("%s of stream %s is %s; the setting is %s", limitKeys[l.Setting], l.Stream, l.Have, l.Want)
		if l.Loses {
			loses = ". A smaller limit deletes the oldest events and results that no longer fit"
		}
	}
	d.say("queue", warn, strings.Join(lines, "\n"), "worker serve leaves the limits of a stream that exists as they are. Change the settings, or the streams: worker doctor --set-limits"+loses)
	return false
}

// limitKeys are the settings of the fields of natsqueue.Config that limit a stream.
var limitKeys = map[string]string{
	"MaxJobs": "nats.max_jobs", "MaxJobBytes": "nats.max_job_bytes", "EventsAge": "nats.events_age", "EventsBytes": "nats.events_bytes",
	"ResultsAge": "nats.results_age", "MaxScheduledBytes": "nats.max_scheduled_bytes", "ResultsBytes": "nats.results_bytes",
	"DeadBytes": "nats.dead_bytes", "RecordsBytes": "nats.records_bytes",
}

// lookAtQueue returns the streams and consumers that Setup would make, as a text that is empty if there are none, and as
// an error what Setup could not mend.
func lookAtQueue(ctx context.Context, conn *natsqueue.Conn, prefix string) (missing string, err error) {
	var many interface{ Unwrap() []error }
	err = conn.Check(ctx)
	if errors.Is(err, job.ErrNotSetUp) {
		return fmt.Sprintf("no streams of prefix %s are on this server", prefix), nil
	}
	if !errors.As(err, &many) {
		return "", err
	}
	var names []string
	var wrong []error
	for _, one := range many.Unwrap() {
		if missing, ok := errors.AsType[*natsqueue.MissingError](one); ok {
			names = append(names, missing.Kind+" "+missing.Name)
		} else {
			wrong = append(wrong, one)
		}
	}
	if len(names) == 0 {
		return "", errors.Join(wrong...)
	}
	if slices.ContainsFunc(names, func(name string) bool { return strings.HasPrefix(name, "stream ") }) {
		// Without the streams the other mistakes may be consequences; a denied right is not.
		wrong = slices.DeleteFunc(wrong, func(err error) bool { return !isDenied(err) })
	}
	return "not there yet: " + strings.Join(names, ", "), errors.Join(wrong...)
}

func isDenied(err error) bool {
	var denied *natsqueue.PermissionError
	return errors.As(err, &denied)
}
