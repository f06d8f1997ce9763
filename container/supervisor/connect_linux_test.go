package supervisor_test

import (
	"context"
	"errors"
	"io"
	"os"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"slipway/container"
	"slipway/container/supervisor"
	"slipway/container/supervisor/internal/wire"
)

func TestProtocolErrors(t *testing.T) {
	window := make([]byte, wire.MaxData)
	open := wire.AppendFrame(nil, wire.Open, 1, []byte{byte(wire.KindExec)})
	for name, bytes := range map[string][]byte{
		"unknown type": {99, 0, 0, 0, 0, 0, 0, 0, 0},
		"too long":     {byte(wire.Data), 0, 0, 0, 1, 0, 2, 0, 0},
		"no stream":    wire.AppendFrame(nil, wire.Data, 7, []byte("x")),
		"second hello": wire.AppendFrame(nil, wire.Hello, 0, nil),
		"bad command":  open,
		"unknown kind": wire.AppendFrame(nil, wire.Open, 1, []byte{200}),
		"stream 0":     wire.AppendFrame(nil, wire.Open, 0, []byte{byte(wire.KindWalk)}),
		"over the window": func() []byte {
			cmd := wire.Command{Args: []string{"sleep", "600"}, UID: -1, GID: -1, Stdin: true}
			b := wire.AppendFrame(nil, wire.Open, 1, append([]byte{byte(wire.KindExec)}, cmd.Encode()...))
			for range 8 {
				b = wire.AppendFrame(b, wire.Data, 1, window)
			}
			return b
		}(),
	} {
		t.Run(name, func(t *testing.T) {
			r, conn := raw(t, time.Minute)
			go func() { _, _ = io.Copy(io.Discard, conn) }()
			if _, err := conn.Write(bytes); err != nil && !errors.Is(err, unix.EPIPE) {
				t.Fatal(err)
			}
			r.ended(t, "SLIPWAY_MARK=none", 73)
		})
	}
}

func TestConnectFails(t *testing.T) {
	root := tempRoot(t)
	r := newRig(t, root)
	if err := os.Remove(r.work); err != nil {
		t.Fatal(err)
	}
	_, err := supervisor.Connect(t.Context(), r.start(), supervisor.Config{Workdir: r.work, User: stepUser(), Root: root})
	if !errors.Is(err, container.ErrBoxLost) || !strings.Contains(err.Error(), "workspace") {
		t.Errorf("Connect without workspace = %v", err)
	}
	if code := r.wait(); code != 74 {
		t.Errorf("exit code = %d, want 74", code)
	}
}

// silent is a peer that never answers.
type silent struct{ closed chan struct{} }

func (s silent) Read([]byte) (int, error) { <-s.closed; return 0, io.ErrClosedPipe }

func (s silent) Write(p []byte) (int, error) { return len(p), nil }

func (s silent) Close() error { close(s.closed); return nil }

func TestConnectCanceled(t *testing.T) {
	ctx, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
	defer cancel()
	_, err := supervisor.Connect(ctx, silent{make(chan struct{})}, supervisor.Config{})
	if !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("Connect = %v, want DeadlineExceeded", err)
	}
}
