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
	// The fields mean what those of natsqueue.Config mean.
	URL, Creds, Nkey, CA, Cert, Key, InboxPrefix, Prefix string
	// TLSFirst is that of natsqueue.Config, too.
	TLSFirst bool
	// Worker is what workers set beyond that: Queues, Timing, limits. Connect fills in the rest.
	Worker natsqueue.Config
}

// DefaultNATS is where a nats-server listens that was told nothing, and where worker dev puts its own.
const DefaultNATS = "nats://127.0.0.1:4222"

// Register adds the settings that both programs have.
func (n *NATS) Register(set *settings.Set) {
	set.String(&n.URL, "nats.url", DefaultNATS, "where the queue's nats-server is; several with commas").
		Check(func() error { return natsqueue.CheckURL(n.URL) })
	n.registerIdentity(set)
	set.String(&n.Prefix, "nats.prefix", "slipway", "put before the names of all streams and subjects, so that several installations can share a server").
		Check(func() error { return natsqueue.CheckPrefix(n.Prefix) })
}

// registerIdentity adds the settings for authentication and TLS.
func (n *NATS) registerIdentity(set *settings.Set) {
	set.String(&n.Creds, "nats.creds", "", "file with the NATS credentials").Check(UnlessEmpty(&n.Creds, natsqueue.CheckCreds))
	set.String(&n.Nkey, "nats.nkey", "", "file with the seed of an NKey, in place of credentials").Check(UnlessEmpty(&n.Nkey, natsqueue.CheckNkey))
	set.Together(func() error {
		if n.Creds != "" && n.Nkey != "" {
			return errors.New("nats.creds and nats.nkey exclude each other")
		}
		return nil
	}, "nats.creds", "nats.nkey")
	set.String(&n.CA, "nats.tls_ca", "", "PEM file with the authorities that the server's certificate is checked against; default: the system's").
		Check(UnlessEmpty(&n.CA, natsqueue.CheckCA))
	set.String(&n.Cert, "nats.tls_cert", "", "PEM file with the certificate that the server is shown, if it wants one")
	set.String(&n.Key, "nats.tls_key", "", "PEM file with the key of that certificate")
	set.Together(func() error {
		if n.Cert == "" && n.Key == "" {
			return nil
		}
		return natsqueue.CheckCert(n.Cert, n.Key)
	}, "nats.tls_cert", "nats.tls_key")
	set.Bool(&n.TLSFirst, "nats.tls_first", false, "begin with TLS; for servers with handshake_first")
	set.String(&n.InboxPrefix, "nats.inbox_prefix", "", "where the server's answers go, for accounts that may read that subject alone; default: _INBOX").
		Check(UnlessEmpty(&n.InboxPrefix, natsqueue.CheckInboxPrefix))
}

// Config is what Connect connects with. name is what the server shows for the connection.
func (n *NATS) Config(name string) natsqueue.Config {
	cfg := n.Worker
	cfg.URL, cfg.Name, cfg.Prefix, cfg.InboxPrefix = n.URL, name, n.Prefix, n.InboxPrefix
	cfg.CredsFile, cfg.NkeyFile, cfg.CAFile, cfg.CertFile, cfg.KeyFile, cfg.TLSFirst = n.Creds, n.Nkey, n.CA, n.Cert, n.Key, n.TLSFirst
	return cfg
}

// Connect opens the queue. Its error says which setting to look at.
func (n *NATS) Connect(ctx context.Context, name string) (*natsqueue.Conn, error) {
	conn, err := natsqueue.Connect(ctx, n.Config(name))
	switch {
	case errors.Is(err, natsqueue.ErrTLS):
		return nil, hint.With(err, "Set --nats-tls-ca (SLIPWAY_NATS_TLS_CA) to the authority of the server's certificate, and if it wants one of its clients --nats-tls-cert and --nats-tls-key (SLIPWAY_NATS_TLS_CERT, SLIPWAY_NATS_TLS_KEY). A server with handshake_first needs --nats-tls-first")
	case errors.Is(err, natsqueue.ErrCredentials):
		return nil, hint.With(err, "Set --nats-creds (SLIPWAY_NATS_CREDS) or --nats-nkey (SLIPWAY_NATS_NKEY) to the file of a user that the server knows, or name user and password in SLIPWAY_NATS_URL")
	case err != nil:
		return nil, hint.With(err, "The queue was looked for at %s. Is a nats-server with JetStream there? Set --nats-url or SLIPWAY_NATS_URL, and --nats-creds or SLIPWAY_NATS_CREDS if it wants credentials; worker dev starts one of its own",
			settings.MaskURLs(n.URL))
	}
	return conn, nil
}

// Explain gives an error of the queue its hint: which setting to look at, or what else.
func (n *NATS) Explain(err error) error {
	var denied *natsqueue.PermissionError
	var full *natsqueue.FullError
	switch {
	case errors.As(err, &full):
		return hint.With(err, "%s", n.advice(full))
	case errors.As(err, &denied):
		return hint.With(err, "Give these rights to the account of --nats-creds (SLIPWAY_NATS_CREDS), or of the user in --nats-url (SLIPWAY_NATS_URL)")
	case errors.Is(err, job.ErrNotSetUp):
		return hint.With(err, "Set --nats-prefix or SLIPWAY_NATS_PREFIX, which is %s here, to that of the workers; worker serve and worker doctor --setup make the streams of theirs", n.Prefix)
	case errors.Is(err, job.ErrUnavailable):
		return hint.With(err, "Look at the nats-server's log: it does not answer, or the connection to it is lost")
	}
	return err
}

// advice is what an operator can do about full. It speaks of settings and commands, where the library speaks of its API.
func (n *NATS) advice(full *natsqueue.FullError) string {
	const raise = "in the workers' settings and run worker doctor --set-limits"
	switch full.Stream {
	case n.Prefix + "-JOBS":
		if !full.Store {
			return "Try again when workers have caught up; submit list --state queued shows what waits, and submit cancel ID ends it. Or raise nats.max_jobs or nats.max_job_bytes " + raise
		}
	case n.Prefix + "-SCHED":
		if !full.Store {
			return "Cancel jobs that wait for their time (submit list --state scheduled, submit cancel ID), or raise nats.max_scheduled_bytes " + raise
		}
	case n.Prefix + "-DEAD":
		if !full.Store {
			return "Look through the dead letters (submit dead list, submit dead requeue ID, submit dead drop ID), or raise nats.dead_bytes " + raise
		}
	case "KV_" + n.Prefix + "-jobs":
		if !full.Store {
			return "The records of decided jobs go after nats.results_age; raise nats.records_bytes, or lower that age, " + raise
		}
	}
	return "Make room in the store: submit dead drop ID, submit cancel ID, and whatever else lies on this server; or raise max_file_store of nats-server, or the account's limit. worker doctor shows the streams that have no limit"
}
