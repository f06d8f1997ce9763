package metrics

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"strconv"
	"strings"
	"time"
)

// DefaultAddr is the address of a worker's metrics if no other one is configured.
const DefaultAddr = "127.0.0.1:9464"

// stopGrace is how long open requests may go on after the server was told to stop.
const stopGrace = 3 * time.Second

// Serve listens on addr and serves h until ctx ends. It then lets open requests finish
// for up to 3 s and returns nil. Listen describes addr.
func Serve(ctx context.Context, addr string, h http.Handler) error {
	ln, err := Listen(ctx, addr)
	if err != nil {
		return err
	}
	return ServeListener(ctx, ln, h)
}

// Listen opens addr: "host:port", or "unix:/path". Empty means DefaultAddr. The
// host is required: ":9464" would open the port to the whole network without
// saying so, and is refused. Port 0 stands for a free port, which the listener's Addr returns.
func Listen(ctx context.Context, addr string) (net.Listener, error) {
	if addr == "" {
		addr = DefaultAddr
	}
	if err := CheckAddr(addr); err != nil {
		return nil, fmt.Errorf("listen for metrics: metrics address: %w", err)
	}
	network := "tcp"
	if path, ok := strings.CutPrefix(addr, "unix:"); ok {
		network, addr = "unix", path
	}
	ln, err := (&net.ListenConfig{}).Listen(ctx, network, addr)
	if err != nil {
		return nil, fmt.Errorf("listen for metrics: %w: choose another metrics address", err)
	}
	return ln, nil
}

// CheckAddr returns an error if addr has not the form that Listen wants.
func CheckAddr(addr string) error {
	if path, ok := strings.CutPrefix(addr, "unix:"); ok {
		if path == "" {
			return errors.New("want unix: and the path of a socket")
		}
		return nil
	}
	host, port, err := net.SplitHostPort(addr)
	if err == nil && host == "" {
		return fmt.Errorf("%q names no host: write 127.0.0.1%s for this machine alone, or 0.0.0.0%[2]s to open it to the network", addr, addr)
	}
	if err == nil {
		_, err = strconv.ParseUint(port, 10, 16)
	}
	if err != nil {
		return fmt.Errorf("want host:port such as %s, not %.100q", DefaultAddr, addr)
	}
	return nil
}

// ServeListener serves h on ln as Serve does, and closes ln.
func ServeListener(ctx context.Context, ln net.Listener, h http.Handler) error {
	srv := &http.Server{
		Handler:           h,
		ReadHeaderTimeout: 5 * time.Second,
		ReadTimeout:       10 * time.Second,
		WriteTimeout:      30 * time.Second,
		IdleTimeout:       2 * time.Minute,
		MaxHeaderBytes:    16 << 10,
	}
	ended := make(chan error, 1)
	go func() { ended <- srv.Serve(ln) }()
	select {
	case err := <-ended:
		return fmt.Errorf("serve metrics: %w", err)
	case <-ctx.Done():
	}
	stop, cancel := context.WithTimeout(context.WithoutCancel(ctx), stopGrace)
	defer cancel()
	err := srv.Shutdown(stop)
	if err != nil {
		err = srv.Close() // a client does not read its answer: close its connection
	}
	if served := <-ended; err == nil && !errors.Is(served, http.ErrServerClosed) {
		err = served
	}
	if err != nil {
		return fmt.Errorf("stop serving metrics: %w", err)
	}
	return nil
}
