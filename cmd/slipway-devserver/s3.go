//go:build linux || darwin

package main

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"net"
	"net/http"
	"strconv"
	"time"

	"github.com/versity/versitygw/backend/meta"
	"github.com/versity/versitygw/backend/posix"
	"github.com/versity/versitygw/embedgw"

	"slipway/internal/devprotocol"
)

const (
	healthPath = "/_health"
	region     = "us-east-1"
	// maxRequests bounds the requests under way, and with them the memory.
	maxRequests = 512
	mostParts   = 10_000
)

// gateway is a running versitygw.
type gateway struct {
	cancel context.CancelFunc
	ended  chan struct{}
	err    error // valid when ended is closed
}

// startS3 runs the gateway until ctx is done, and returns its address once it answers. It changes the
// working directory of this process.
func startS3(ctx context.Context, set devprotocol.S3) (*gateway, string, error) {
	if err := (meta.XattrMeta{}).Test(set.Dir); err != nil {
		return nil, "", fmt.Errorf("start the S3 gateway: %s has to be on a file system with extended attributes: %w", set.Dir, err)
	}
	backend, err := posix.New(set.Dir, meta.XattrMeta{}, posix.PosixOpts{NewDirPerm: 0o700, NewFilePerm: 0o600, ValidateBucketNames: true, Concurrency: maxRequests})
	if err != nil {
		return nil, "", fmt.Errorf("start the S3 gateway on %s: %w", set.Dir, err)
	}
	addr, err := settle(ctx, set.Addr)
	if err != nil {
		return nil, "", fmt.Errorf("start the S3 gateway: %w", err)
	}
	ctx, cancel := context.WithCancel(ctx)
	g := &gateway{cancel: cancel, ended: make(chan struct{})}
	go func() {
		defer close(g.ended)
		g.err = embedgw.RunVersityGW(ctx, backend, &embedgw.Config{
			RootUserAccess: set.AccessKey, RootUserSecret: set.SecretKey, Region: region,
			Ports: []string{addr}, MaxConnections: 2 * maxRequests, MaxRequests: maxRequests, MultipartMaxParts: mostParts,
			Quiet: true, KeepAlive: true, DisableACLs: true, HealthPath: healthPath, IAMCacheDisable: true,
		})
	}()
	if err := g.ready(ctx, addr); err != nil {
		cancel()
		return nil, "", fmt.Errorf("start the S3 gateway on %s: %w", addr, err)
	}
	return g, addr, nil
}

// settle replaces port 0 by a free one, and refuses a port that is taken: another gateway there would answer in this one's
// place. The gateway can neither be given a listener nor be asked for its port.
func settle(ctx context.Context, addr string) (string, error) {
	host, port, err := net.SplitHostPort(addr)
	if err != nil {
		return "", fmt.Errorf("address %q: %w", addr, err)
	}
	for try := 1; ; try++ {
		if port == "0" {
			// Not one of the kernel's choice: it may give the same one to another program before the gateway listens.
			addr = net.JoinHostPort(host, strconv.Itoa(10_000+rand.IntN(20_000)))
		}
		l, err := (&net.ListenConfig{}).Listen(ctx, "tcp", addr)
		if err == nil {
			return addr, l.Close()
		}
		if port != "0" || try == 20 {
			return "", fmt.Errorf("find a free port: %w", err)
		}
	}
}

// ready waits until this gateway answers. A server of another kind that took the port has no such path.
func (g *gateway) ready(ctx context.Context, addr string) error {
	client := http.Client{Timeout: time.Second}
	defer client.CloseIdleConnections()
	pause := time.NewTicker(2 * time.Millisecond)
	defer pause.Stop()
	for {
		resp, err := client.Get("http://" + addr + healthPath) //nolint:noctx // the timeout is enough
		if err == nil {
			resp.Body.Close()
			if resp.StatusCode == http.StatusOK {
				return nil
			}
		}
		select {
		case <-g.ended:
			return errors.Join(errors.New("it ended"), g.err)
		case <-pause.C:
		case <-ctx.Done():
			return context.Cause(ctx)
		}
	}
}
