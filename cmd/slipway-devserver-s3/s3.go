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

	"github.com/aws/aws-sdk-go-v2/aws"
	v4 "github.com/aws/aws-sdk-go-v2/aws/signer/v4"
	"github.com/versity/versitygw/backend/meta"
	"github.com/versity/versitygw/backend/posix"
	"github.com/versity/versitygw/embedgw"

	"slipway/cmd/internal/devchild"
	"slipway/internal/devprotocol"
)

const (
	region = "us-east-1"
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

// startS3 runs the gateway until it is closed. ctx bounds the start only. It changes the working directory of this process.
func startS3(ctx context.Context, set devprotocol.Settings) (none devchild.Server, err error) {
	if err := (meta.XattrMeta{}).Test(set.Dir); err != nil {
		return none, fmt.Errorf("start the S3 gateway: %s has to be on a file system with extended attributes: %w", set.Dir, err)
	}
	backend, err := posix.New(set.Dir, meta.XattrMeta{}, posix.PosixOpts{NewDirPerm: 0o700, NewFilePerm: 0o600, ValidateBucketNames: true, Concurrency: maxRequests})
	if err != nil {
		return none, fmt.Errorf("start the S3 gateway on %s: %w", set.Dir, err)
	}
	addr, err := settle(ctx, set.Addr)
	if err != nil {
		return none, fmt.Errorf("start the S3 gateway: %w", err)
	}
	run, cancel := context.WithCancel(context.WithoutCancel(ctx))
	g := &gateway{cancel: cancel, ended: make(chan struct{})}
	go func() {
		defer close(g.ended)
		g.err = embedgw.RunVersityGW(run, backend, &embedgw.Config{
			RootUserAccess: set.User, RootUserSecret: set.Password, Region: region,
			Ports: []string{addr}, MaxConnections: 2 * maxRequests, MaxRequests: maxRequests, MultipartMaxParts: mostParts,
			Quiet: true, KeepAlive: true, DisableACLs: true, IAMCacheDisable: true,
		})
	}()
	if err := g.ready(ctx, addr, set); err != nil {
		cancel()
		return none, fmt.Errorf("start the S3 gateway on %s: %w", addr, err)
	}
	return devchild.Server{Addr: addr, Ended: g.ended, Err: func() error { return g.err }, Close: g.close}, nil
}

// close ends the gateway. It waits for requests under way, for ever if a client does: it gets half of the time after which
// this process is killed.
func (g *gateway) close() {
	g.cancel()
	select {
	case <-g.ended:
	case <-time.After(devprotocol.CloseTime / 2):
	}
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

// ready waits until this gateway answers, with set's account. Another gateway may have taken the port meanwhile: it
// does not know the account.
func (g *gateway) ready(ctx context.Context, addr string, set devprotocol.Settings) error {
	client := http.Client{Timeout: time.Second}
	defer client.CloseIdleConnections()
	pause := time.NewTicker(2 * time.Millisecond)
	defer pause.Stop()
	for {
		status, err := ask(ctx, &client, addr, set)
		switch {
		case err == nil && status == http.StatusOK:
			return nil
		case err == nil && status == http.StatusForbidden:
			return errors.New("another S3 gateway answers there")
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

// ask lists the buckets of set's account, and returns the answer's status.
func ask(ctx context.Context, client *http.Client, addr string, set devprotocol.Settings) (status int, err error) {
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, "http://"+addr+"/", http.NoBody)
	if err != nil {
		return 0, err
	}
	const emptyBody = "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855"
	req.Header.Set("X-Amz-Content-Sha256", emptyBody)
	account := aws.Credentials{AccessKeyID: set.User, SecretAccessKey: set.Password}
	if err := v4.NewSigner().SignHTTP(ctx, account, req, emptyBody, "s3", region, time.Now()); err != nil {
		return 0, err
	}
	resp, err := client.Do(req)
	if err != nil {
		return 0, err
	}
	return resp.StatusCode, resp.Body.Close()
}
