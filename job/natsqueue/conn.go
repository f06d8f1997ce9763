package natsqueue

import (
	"context"
	"fmt"
	"strings"

	"slipway/job/natsqueue/internal/jsconn"
)

// Conn is a connection to one queue. It is safe for concurrent use.
type Conn struct {
	cfg     Config
	names   names
	js      *jsconn.Conn
	streams streams

	records   records
	tokens    tokens
	decisions decisions
	workers   workers
	strays    strays
	rooms     rooms
}

// streams are the streams and buckets of one queue.
type streams struct {
	jobs, sched, results, dead, events jsconn.Stream
	records, workers                   jsconn.Bucket
}

// Connect connects to the server of cfg. A server that goes away later is waited
// for without end. The caller calls Close, after having closed its Consumers.
func Connect(ctx context.Context, cfg Config) (*Conn, error) {
	cfg = cfg.withDefaults()
	if err := cfg.validate(); err != nil {
		return nil, fmt.Errorf("connect to NATS: %w", err)
	}
	if err := cfg.checkFiles(); err != nil {
		return nil, fmt.Errorf("connect to NATS: %w", err)
	}
	n := names(cfg.Prefix)
	o := jsconn.Options{
		URL: cfg.URL, CredsFile: cfg.CredsFile, NkeyFile: cfg.NkeyFile, CAFile: cfg.CAFile, CertFile: cfg.CertFile, KeyFile: cfg.KeyFile,
		TLSFirst: cfg.TLSFirst, Name: cfg.Name, InboxPrefix: cfg.InboxPrefix,
		InProcess: cfg.InProcess, Prefix: cfg.Prefix, OnError: cfg.OnError,
	}
	for _, s := range layout(n, cfg) {
		o.Streams = append(o.Streams, jsconn.StreamName{Name: s.Name, Subjects: strings.TrimRight(s.Subjects[0], "*.>") + "."})
	}
	js, err := jsconn.Dial(ctx, o)
	if err != nil {
		return nil, fmt.Errorf("connect to NATS: %w", err)
	}
	return newConn(cfg, n, js), nil
}

func newConn(cfg Config, n names, js *jsconn.Conn) *Conn {
	s := streams{
		jobs: js.Stream(n.jobs()), sched: js.Stream(n.sched()), results: js.Stream(n.results()), dead: js.Stream(n.dead()),
		events: js.Stream(n.events()), records: js.Bucket(n.records()), workers: js.Bucket(n.workers()),
	}
	r := records{js: js, bucket: s.records, keep: cfg.ResultsAge}
	return &Conn{
		cfg: cfg, names: n, js: js, streams: s,
		records:   r,
		tokens:    tokens{names: n, js: js, jobs: s.jobs, sched: s.sched},
		decisions: decisions{names: n, js: js, records: r, results: s.results, dead: s.dead},
		workers:   workers{bucket: s.workers},
		rooms:     rooms{names: n, cfg: cfg, js: js},
	}
}

// Client returns the producer's and the reader's side of c. It lives as long as c.
func (c *Conn) Client() *Client { return &Client{q: c} }

// Workers lists the workers that are alive, by name.
func (c *Conn) Workers(ctx context.Context) ([]WorkerInfo, error) { return c.workers.list(ctx) }

// Connected reports whether the server is reachable at this moment.
func (c *Conn) Connected() bool { return c.js.Connected() }

// Close ends the connection and waits for its goroutines. It may be called twice.
func (c *Conn) Close() { c.js.Close() }
