package main

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"sync"

	"golang.org/x/sync/errgroup"

	"slipway/devserver"
	"slipway/internal/hint"
	"slipway/job"
	"slipway/job/natsqueue"
	"slipway/runner"
	wsync "slipway/sync"
	"slipway/sync/s3store"
)

// Where worker dev listens, if nobody else does.
const (
	devNATSAddr = "127.0.0.1:4222"
	devS3Addr   = "127.0.0.1:7070"
)

// devServices are a queue and a store on a folder, for as long as this program runs.
type devServices struct {
	dir     string
	queue   string
	servers *devserver.Servers
	store   wsync.Store
	conn    *natsqueue.Conn
	closers closers
}

// openDevServices starts both on dir, for a worker of one queue. programs is the folder of the servers' programs, empty
// for their usual place. shared: other programs of this machine shall reach queue and store, so the store is an S3
// gateway. Else it is a folder, which needs no server. The caller calls close.
func openDevServices(ctx context.Context, dir, queue, programs string, shared bool) (_ *devServices, err error) {
	d := &devServices{dir: dir, queue: queue}
	defer func() {
		if err != nil {
			err = errors.Join(err, d.close())
		}
	}()
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return nil, fmt.Errorf("make the data folder: %w", err)
	}
	unlock, err := lockFolder(dir)
	if err != nil {
		return nil, err
	}
	d.closers.add(unlock)
	if err := checkKind(dir, shared); err != nil {
		return nil, err
	}
	if err := d.startServers(ctx, programs, shared); err != nil {
		return nil, err
	}
	d.closers.add(d.servers.Close)
	if err := d.openStore(shared); err != nil {
		return nil, err
	}
	var both errgroup.Group
	both.Go(func() error { return d.openQueue(ctx) })
	if gateway, ok := d.store.(*s3store.Store); ok {
		both.Go(func() error { return gateway.EnsureBucket(ctx) })
	}
	err = both.Wait()
	if d.conn != nil {
		d.closers.add(func() error { d.conn.Close(); return nil })
	}
	return d, err
}

func (d *devServices) close() error { return d.closers.close() }

func (d *devServices) startServers(ctx context.Context, programs string, shared bool) error {
	opts := devserver.Options{Programs: programs, NATS: &devserver.NATS{Dir: filepath.Join(d.dir, "nats"), Private: !shared}}
	if !shared {
		return d.start(ctx, opts)
	}
	keys, err := loadKeys(d.dir)
	if err != nil {
		return err
	}
	opts.NATS.Addr = freeAddr(ctx, devNATSAddr)
	opts.S3 = &devserver.S3{
		Dir: filepath.Join(d.dir, gatewayStore), Addr: freeAddr(ctx, devS3Addr), AccessKey: keys.AccessKey, SecretKey: keys.SecretKey,
	}
	if err := d.start(ctx, opts); err != nil {
		return err
	}
	if keys == (storeKeys{}) {
		if err := (storeKeys{d.servers.AccessKey, d.servers.SecretKey}).save(d.dir); err != nil {
			return errors.Join(err, d.servers.Close())
		}
	}
	return nil
}

func (d *devServices) start(ctx context.Context, opts devserver.Options) (err error) {
	d.servers, err = devserver.Start(ctx, opts)
	switch {
	case errors.Is(err, devserver.ErrNoProgram):
		return hint.With(err, "Build it with make build, which puts it beside worker, or name the folder of the development servers with --devserver or SLIPWAY_DEVSERVER. worker serve needs none, with a queue and a store of your own")
	case err != nil:
		return hint.With(err, "The data folder is %s; choose another one with --data", d.dir)
	}
	return nil
}

func (d *devServices) openQueue(ctx context.Context) (err error) {
	if d.conn, err = natsqueue.Connect(ctx, natsqueue.Config{
		URL: d.servers.NATSURL, Name: "worker", Queues: []string{d.queue},
		// Less than the defaults: the server reserves all of it, on the disk of whoever tries slipway.
		MaxScheduledBytes: 64 << 20, ResultsBytes: 128 << 20, DeadBytes: 32 << 20, RecordsBytes: 64 << 20,
	}); err != nil {
		return err
	}
	return d.conn.Setup(ctx)
}

// guard returns a context that ends, with the cause devserver.ErrEnded, when a server ends by itself: a worker
// without queue or store would wait for ever. The caller calls stop, which waits for the watching goroutine.
func (d *devServices) guard(ctx context.Context) (_ context.Context, stop func()) {
	ctx, cancel := context.WithCancelCause(ctx)
	var watch sync.WaitGroup
	watch.Go(func() {
		select {
		case <-d.servers.Done():
			cancel(devserver.ErrEnded) // how, says Close
		case <-ctx.Done():
		}
	})
	return ctx, func() { cancel(nil); watch.Wait() }
}

// endedBy is the cause of the end of a guarded context, if it is that of the servers.
func endedBy(ctx context.Context) error {
	if err := context.Cause(ctx); errors.Is(err, devserver.ErrEnded) {
		return err
	}
	return nil
}

// freeAddr is addr if nobody listens there, or else a free port on the same host.
func freeAddr(ctx context.Context, addr string) string {
	l, err := (&net.ListenConfig{}).Listen(ctx, "tcp", addr)
	if err == nil {
		if l.Close() == nil {
			return addr
		}
	}
	host, _, _ := net.SplitHostPort(addr)
	return net.JoinHostPort(host, "0")
}

// service makes a worker on d, with a name that begins with kind. The name is like no other on this engine:
// a worker removes boxes of its own name that it does not know. The caller adds the provider and what differs.
func (d *devServices) service(kind string) *service {
	return &service{
		conn: d.conn, store: d.store, ping: pingStore(d.store, ""), dataDir: d.dir, stateDir: d.dir, name: kind + "-" + runner.DefaultName(),
		queues: []string{d.queue}, policy: openPolicy(), timing: job.DefaultTiming(), storeName: d.storeName(), liveShare: liveShare,
	}
}
