//go:build linux || darwin

package s3gateway

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"strings"
	"time"

	"github.com/versity/versitygw/backend/meta"
	"github.com/versity/versitygw/backend/posix"
	"github.com/versity/versitygw/embedgw"
)

const (
	// reportFD is where the address is reported: the first of the parent's ExtraFiles.
	reportFD   = 3
	healthPath = "/_health"
	region     = "us-east-1"
	// maxRequests bounds the requests under way, and with them the memory.
	maxRequests = 512
	mostParts   = 10_000
)

// Main turns this process into the server if Start launched it, and then does not return.
// Otherwise it does nothing. It has to be called before anything else, flags included.
func Main() {
	name, value, _ := strings.Cut(marker, "=")
	if os.Getenv(name) != value {
		return
	}
	if err := serve(); err != nil {
		fmt.Fprintln(os.Stderr, "s3gateway:", err)
		os.Exit(1)
	}
	os.Exit(0)
}

// serve runs until stdin ends, which it does when the parent closes it or dies.
func serve() error {
	report := os.NewFile(reportFD, "report")
	if report == nil {
		return errors.New("descriptor 3 is not open: this process is started by s3gateway.Start only")
	}
	in := bufio.NewReader(os.Stdin)
	line, err := in.ReadBytes('\n')
	if err != nil {
		return fmt.Errorf("read the settings: %w", err)
	}
	var set settings
	if err := json.Unmarshal(line, &set); err != nil {
		return fmt.Errorf("read the settings: %w", err)
	}
	ctx, cancel := context.WithCancel(context.Background()) //nolint:forbidigo // this is the main of a process
	defer cancel()
	go func() {
		io.Copy(io.Discard, in) //nolint:errcheck // only its end is awaited
		cancel()
		// The server waits for requests under way, for ever if a client does.
		<-time.After(closeTime / 2)
		os.Exit(0)
	}()
	if err := (meta.XattrMeta{}).Test(set.Dir); err != nil {
		return fmt.Errorf("use the folder %s: %w", set.Dir, err)
	}
	backend, err := posix.New(set.Dir, meta.XattrMeta{}, posix.PosixOpts{NewDirPerm: 0o700, NewFilePerm: 0o600, ValidateBucketNames: true, Concurrency: maxRequests})
	if err != nil {
		return fmt.Errorf("use the folder %s: %w", set.Dir, err)
	}
	if set.Addr, err = settle(ctx, set.Addr); err != nil {
		return err
	}
	go func() {
		if ready(ctx, set.Addr) {
			fmt.Fprintln(report, set.Addr)
		}
		report.Close()
	}()
	return embedgw.RunVersityGW(ctx, backend, &embedgw.Config{
		RootUserAccess: set.AccessKey, RootUserSecret: set.SecretKey, Region: region,
		Ports: []string{set.Addr}, MaxConnections: 2 * maxRequests, MaxRequests: maxRequests, MultipartMaxParts: mostParts,
		Quiet: true, KeepAlive: true, DisableACLs: true, HealthPath: healthPath, IAMCacheDisable: true,
	})
}

// settle replaces port 0 by a free one. The server can't be given a listener, nor asked for its port.
func settle(ctx context.Context, addr string) (string, error) {
	host, port, err := net.SplitHostPort(addr)
	if err != nil {
		return "", fmt.Errorf("address %q: %w", addr, err)
	}
	if port != "0" {
		return addr, nil
	}
	l, err := (&net.ListenConfig{}).Listen(ctx, "tcp", net.JoinHostPort(host, "0"))
	if err != nil {
		return "", fmt.Errorf("find a free port: %w", err)
	}
	return l.Addr().String(), l.Close()
}

// ready waits until this server answers. Whoever else took the port has no such path.
func ready(ctx context.Context, addr string) bool {
	client := http.Client{Timeout: time.Second}
	defer client.CloseIdleConnections()
	pause := time.NewTicker(2 * time.Millisecond)
	defer pause.Stop()
	for ctx.Err() == nil {
		resp, err := client.Get("http://" + addr + healthPath) //nolint:noctx // the timeout is enough
		if err == nil {
			resp.Body.Close()
			if resp.StatusCode == http.StatusOK {
				return true
			}
		}
		select {
		case <-pause.C:
		case <-ctx.Done():
		}
	}
	return false
}
