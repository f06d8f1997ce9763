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
	d.config.nats.Queues = d.config.queues
	conn, err := d.config.nats.Connect(ctx, "doctor")
	if err != nil {
		d.sayError("queue", err)
		return
	}
	defer conn.Close()
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
