package cli

import (
	"context"
	"errors"

	"slipway/cmd/internal/settings"
	"slipway/internal/hint"
	"slipway/job"
	"slipway/job/natsqueue"
)

// NATS says where the queue is.
type NATS struct {
	URL, Creds, Prefix string
	// Worker is what workers set beyond that: Queues, Timing, limits. Connect fills in the rest.
	Worker natsqueue.Config
}

// DefaultNATS is where a nats-server listens that was told nothing, and where worker dev puts its own.
const DefaultNATS = "nats://127.0.0.1:4222"

// Register adds the settings that both programs have.
func (n *NATS) Register(set *settings.Set) {
	set.String(&n.URL, "nats.url", DefaultNATS, "where the queue's nats-server is; several with commas").
		Check(func() error { return natsqueue.CheckURL(n.URL) })
	set.String(&n.Creds, "nats.creds", "", "file with the NATS credentials").Check(func() error {
		if n.Creds == "" {
			return nil
		}
		return natsqueue.CheckCreds(n.Creds)
	})
	set.String(&n.Prefix, "nats.prefix", "slipway", "put before the names of all streams and subjects, so that several installations can share a server").
		Check(func() error { return natsqueue.CheckPrefix(n.Prefix) })
}

// Connect opens the queue. Its error says which setting to look at.
func (n *NATS) Connect(ctx context.Context, name string) (*natsqueue.Conn, error) {
	cfg := n.Worker
	cfg.URL, cfg.CredsFile, cfg.Name, cfg.Prefix = n.URL, n.Creds, name, n.Prefix
	conn, err := natsqueue.Connect(ctx, cfg)
	if err != nil {
		return nil, hint.With(err, "The queue was looked for at %s. Is a nats-server with JetStream there? Set --nats-url or SLIPWAY_NATS_URL, and --nats-creds or SLIPWAY_NATS_CREDS if it wants credentials; worker dev starts one of its own",
			settings.MaskURLs(n.URL))
	}
	return conn, nil
}

// Explain gives an error of the queue its hint: which setting to look at, or what else.
func (n *NATS) Explain(err error) error {
	var denied *natsqueue.PermissionError
	switch {
	case errors.As(err, &denied):
		return hint.With(err, "Give these rights to the account of --nats-creds (SLIPWAY_NATS_CREDS), or of the user in --nats-url (SLIPWAY_NATS_URL)")
	case errors.Is(err, job.ErrNotSetUp):
		return hint.With(err, "Set --nats-prefix or SLIPWAY_NATS_PREFIX, which is %s here, to that of the workers; worker serve and worker doctor --setup make the streams of theirs", n.Prefix)
	case errors.Is(err, job.ErrUnavailable):
		return hint.With(err, "Look at the nats-server's log: it does not answer, or the connection to it is lost")
	}
	return err
}
