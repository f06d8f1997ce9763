package main

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"sync"
	"syscall"

	"golang.org/x/sync/errgroup"

	"slipway/devserver"
	"slipway/internal/hint"
	"slipway/job"
	"slipway/job/natsqueue"
	"slipway/runner"
	"slipway/sync/s3store"
)

// devBucket is the bucket in the store of worker dev and worker run.
const devBucket = "slipway"

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
	store   *s3store.Store
	conn    *natsqueue.Conn
	closers closers
}

// openDevServices starts both on dir, for a worker of one queue. program is the path of slipway-devserver, empty for
// its usual place. shared: other programs of this machine shall reach the queue. The caller calls close.
func openDevServices(ctx context.Context, dir, queue, program string, shared bool) (_ *devServices, err error) {
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
	if err := d.startServers(ctx, program, shared); err != nil {
		return nil, err
	}
	d.closers.add(d.servers.Close)
	var both errgroup.Group
	both.Go(func() error { return d.openQueue(ctx) })
	both.Go(func() error { return d.openStore(ctx) })
	err = both.Wait()
	if d.store != nil {
		d.closers.add(func() error { d.store.Close(); return nil })
	}
	if d.conn != nil {
		d.closers.add(func() error { d.conn.Close(); return nil })
	}
	return d, err
}

func (d *devServices) close() error { return d.closers.close() }

func (d *devServices) startServers(ctx context.Context, program string, shared bool) error {
	keys, err := loadKeys(d.dir)
	if err != nil {
		return err
	}
	nats := &devserver.NATS{Dir: filepath.Join(d.dir, "nats"), Private: !shared}
	s3 := &devserver.S3{Dir: filepath.Join(d.dir, "s3"), AccessKey: keys.AccessKey, SecretKey: keys.SecretKey}
	if shared {
		nats.Addr, s3.Addr = freeAddr(ctx, devNATSAddr), freeAddr(ctx, devS3Addr)
	}
	d.servers, err = devserver.Start(ctx, devserver.Options{Program: program, NATS: nats, S3: s3})
	switch {
	case errors.Is(err, devserver.ErrNoProgram):
		return hint.With(err, "Build it with make build, which puts it beside worker, or name its place with --devserver or SLIPWAY_DEVSERVER. worker serve needs none, with a queue and a store of your own")
	case err != nil:
		return hint.With(err, "The data folder is %s; choose another one with --data", d.dir)
	}
	if keys == (storeKeys{}) {
		if err := (storeKeys{d.servers.AccessKey, d.servers.SecretKey}).save(d.dir); err != nil {
			return errors.Join(err, d.servers.Close())
		}
	}
	return nil
}

func (d *devServices) openQueue(ctx context.Context) (err error) {
	if d.conn, err = natsqueue.Connect(ctx, natsqueue.Config{URL: d.servers.NATSURL, Name: "worker", Queues: []string{d.queue}}); err != nil {
		return err
	}
	return d.conn.Setup(ctx)
}

func (d *devServices) openStore(ctx context.Context) (err error) {
	d.store, err = s3store.New(s3store.Config{
		Endpoint: d.servers.Endpoint, Bucket: devBucket, PathStyle: true,
		AccessKey: d.servers.AccessKey, SecretKey: d.servers.SecretKey,
	})
	if err != nil {
		return err
	}
	return d.store.EnsureBucket(ctx)
}

// guard returns a context that ends, with the cause devserver.ErrEnded, when the servers end by themselves: a worker
// without queue and store would wait for ever. The caller calls stop, which waits for the watching goroutine.
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
		conn: d.conn, store: d.store, ping: pingStore(d.store, ""), dataDir: d.dir, name: kind + "-" + runner.DefaultName(),
		queues: []string{d.queue}, policy: openPolicy(), timing: job.DefaultTiming(),
	}
}

// errFolderInUse: another program works on the same data folder.
var errFolderInUse = errors.New("another worker uses this data folder")

// lockFolder keeps a second program off dir: two servers on one store destroy it.
func lockFolder(dir string) (unlock func() error, err error) {
	f, err := os.OpenFile(filepath.Join(dir, "lock"), os.O_CREATE|os.O_RDWR, 0o600)
	if err != nil {
		return nil, fmt.Errorf("lock the data folder: %w", err)
	}
	if err := flock(f); err != nil {
		closeErr := f.Close()
		if errors.Is(err, syscall.EWOULDBLOCK) {
			return nil, errors.Join(fmt.Errorf("%w: %s; end that one, or choose another folder with --data", errFolderInUse, dir), closeErr)
		}
		return nil, errors.Join(fmt.Errorf("lock the data folder %s: %w", dir, err), closeErr)
	}
	return f.Close, nil
}
