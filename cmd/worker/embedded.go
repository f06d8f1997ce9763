package main

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"syscall"

	"golang.org/x/sync/errgroup"

	"slipway/internal/hint"
	"slipway/job"
	"slipway/job/natsqueue"
	"slipway/job/natsqueue/natsserver"
	"slipway/runner"
	"slipway/sync/s3store"
	"slipway/sync/s3store/s3gateway"
)

// embeddedBucket is the bucket in the embedded gateway.
const embeddedBucket = "slipway"

// Where worker dev listens, if nobody else does.
const (
	devNATSAddr = "127.0.0.1:4222"
	devS3Addr   = "127.0.0.1:7070"
)

// embedded is a queue and a store on a folder, for as long as this program runs.
type embedded struct {
	dir     string
	queue   string
	nats    *natsserver.Server
	gateway *s3gateway.Gateway
	store   *s3store.Store
	conn    *natsqueue.Conn
	closers closers
}

// openEmbedded starts both on dir, for a worker of one queue. listen: other programs shall reach the queue.
// The caller calls close.
func openEmbedded(ctx context.Context, dir, queue string, listen bool) (_ *embedded, err error) {
	e := &embedded{dir: dir, queue: queue}
	defer func() {
		if err != nil {
			err = errors.Join(err, e.close())
		}
	}()
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return nil, fmt.Errorf("make the data folder: %w", err)
	}
	unlock, err := lockFolder(dir)
	if err != nil {
		return nil, err
	}
	e.closers.add(unlock)
	var both errgroup.Group // the gateway takes a while, as a process does
	both.Go(func() error { return e.startQueue(ctx, listen) })
	both.Go(func() error { return e.startStore(ctx, listen) })
	err = both.Wait()
	// In the order in which they are closed: readers before what they read from.
	if e.nats != nil {
		e.closers.add(func() error { e.nats.Close(); return nil })
	}
	if e.gateway != nil {
		e.closers.add(e.gateway.Close)
	}
	if e.store != nil {
		e.closers.add(func() error { e.store.Close(); return nil })
	}
	if e.conn != nil {
		e.closers.add(func() error { e.conn.Close(); return nil })
	}
	return e, err
}

func (e *embedded) close() error { return e.closers.close() }

func (e *embedded) startQueue(ctx context.Context, listen bool) (err error) {
	opts := natsserver.Options{Dir: filepath.Join(e.dir, "nats"), NoListen: !listen}
	if listen {
		opts.Addr = freeAddr(ctx, devNATSAddr)
	}
	if e.nats, err = natsserver.Start(opts); err != nil {
		return err
	}
	if e.conn, err = natsqueue.Connect(ctx, natsqueue.Config{InProcess: e.nats, Name: "worker", Queues: []string{e.queue}}); err != nil {
		return err
	}
	return e.conn.Setup(ctx)
}

func (e *embedded) startStore(ctx context.Context, listen bool) (err error) {
	addr := "127.0.0.1:0"
	if listen {
		addr = freeAddr(ctx, devS3Addr)
	}
	keys, err := loadKeys(e.dir)
	if err != nil {
		return err
	}
	e.gateway, err = s3gateway.Start(ctx, s3gateway.Options{
		Dir: filepath.Join(e.dir, "s3"), Addr: addr, AccessKey: keys.AccessKey, SecretKey: keys.SecretKey,
	})
	if err != nil {
		return hint.With(err, "The folder must be on a file system with extended attributes: choose another one with --data")
	}
	if keys == (storeKeys{}) {
		if err := (storeKeys{e.gateway.AccessKey, e.gateway.SecretKey}).save(e.dir); err != nil {
			return err
		}
	}
	e.store, err = s3store.New(s3store.Config{
		Endpoint: e.gateway.Endpoint, Bucket: embeddedBucket, PathStyle: true,
		AccessKey: e.gateway.AccessKey, SecretKey: e.gateway.SecretKey,
	})
	if err != nil {
		return err
	}
	return e.store.EnsureBucket(ctx)
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

// service makes a worker on e, with a name that begins with kind. The name is like no other on this engine:
// a worker removes boxes of its own name that it does not know. The caller adds the provider and what differs.
func (e *embedded) service(kind string) *service {
	return &service{
		conn: e.conn, store: e.store, ping: pingStore(e.store, ""), dataDir: e.dir, name: kind + "-" + runner.DefaultName(),
		queues: []string{e.queue}, policy: openPolicy(), timing: job.DefaultTiming(),
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
