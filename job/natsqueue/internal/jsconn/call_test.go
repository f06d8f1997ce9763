package jsconn

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"slipway/job"
)

var errSilent = errors.New("nobody answers")

// A call without a deadline ends after Patience, with pauses that double up to LastBackoff.
func TestCallEnds(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		name     string
		deadline time.Duration
		want     time.Duration
	}{
		{"without a deadline", 0, Patience},
		{"a shorter one", 3 * time.Second, 3 * time.Second},
		{"a longer one", time.Minute, time.Minute},
	} {
		t.Run(tt.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				ctx := t.Context()
				if tt.deadline > 0 {
					var cancel context.CancelFunc
					ctx, cancel = context.WithTimeout(ctx, tt.deadline)
					defer cancel()
				}
				began, tries := time.Now(), []time.Duration{}
				err := (&caller{where: "here"}).callDuringSetup(ctx, "op", "s", func(context.Context) error {
					tries = append(tries, time.Since(began))
					return errSilent
				})
				if took := time.Since(began); took != tt.want || !errors.Is(err, job.ErrUnavailable) || !errors.Is(err, errSilent) {
					t.Errorf("got %v after %s, want ErrUnavailable after %s", err, took, tt.want)
				}
				for i := 1; i < len(tries); i++ {
					if pause, want := tries[i]-tries[i-1], min(firstBackoff<<min(i-1, 10), LastBackoff); pause != want {
						t.Errorf("pause %d: got %s, want %s", i, pause, want)
					}
				}
			})
		})
	}
}

// A try that gets no answer ends after TryTimeout, a denied one at once, and a call goes on only after errors that pass.
func TestTries(t *testing.T) {
	t.Parallel()
	hang := func(ctx context.Context) error { <-ctx.Done(); return ctx.Err() }
	synctest.Test(t, func(t *testing.T) {
		c := &caller{}
		began := time.Now()
		if err := c.tryOnce(t.Context(), "s", hang); !errors.Is(err, context.DeadlineExceeded) || time.Since(began) != TryTimeout {
			t.Errorf("a hanging try: got %v after %s, want its end after %s", err, time.Since(began), TryTimeout)
		}
		began = time.Now()
		time.AfterFunc(time.Second, func() {
			_ = c.denials.note(fmt.Errorf("%w: Permissions Violation for Publish to %q", nats.ErrPermissionViolation, "s"))
		})
		err := c.callDuringSetup(t.Context(), "op", "s", hang)
		if denied, ok := errors.AsType[*PermissionError](err); !ok || denied.Subject != "s" || time.Since(began) != time.Second {
			t.Errorf("a denied call: got %v after %s, want the denial at once", err, time.Since(began))
		}
	})
	for _, tt := range []struct {
		err  error
		want bool
	}{
		{errSilent, true},
		{context.DeadlineExceeded, true},
		{nats.ErrNoResponders, true},
		{errPartial, true},
		{&jetstream.APIError{Code: 503, ErrorCode: 10008}, true},
		{&FullError{err: &jetstream.APIError{Code: 503, ErrorCode: codeServerFull}}, false},
		{&jetstream.APIError{Code: 400, ErrorCode: jetstream.JSErrCodeStreamWrongLastSequence}, false},
		{nats.ErrConnectionClosed, false},
		{nats.ErrMaxPayload, false},
		{jetstream.ErrMsgNotFound, false},
		{job.ErrNotSetUp, false},
		{&PermissionError{}, false},
		{errRefused, false},
		{errUnreadable, false},
	} {
		if got := Transient(tt.err); got != tt.want {
			t.Errorf("Transient(%v): got %t, want %t", tt.err, got, tt.want)
		}
	}
}

// An answer that would be the same at the next try ends the call at once, and the error does not speak of a silent server.
func TestAnswersThatStay(t *testing.T) {
	t.Parallel()
	header := func(pairs ...string) nats.Header {
		h := nats.Header{}
		for i := 0; i < len(pairs); i += 2 {
			h.Set(pairs[i], pairs[i+1])
		}
		return h
	}
	for _, tt := range []struct {
		name string
		try  func() error
		want string
	}{
		{"a bad request", func() error {
			_, err := rawMessage(&nats.Msg{Header: header("Status", "408", "Description", "Bad Request")})
			return err
		}, "op: the NATS server at here refused the request: status 408: Bad Request"},
		{"a status of a later server", func() error {
			_, err := rawMessage(&nats.Msg{Header: header("Status", "418", "Description", "teapot")})
			return err
		}, "op: the NATS server at here refused the request: status 418: teapot"},
		{"no sequence", func() error {
			_, err := rawMessage(&nats.Msg{})
			return err
		}, "op: the NATS server at here gave an answer that can't be read: sequence: "},
		{"no time", func() error {
			_, err := rawMessage(&nats.Msg{Header: header(jetstream.SequenceHeader, "7")})
			return err
		}, "op: the NATS server at here gave an answer that can't be read: time: "},
		{"no JSON", func() error { return apiError([]byte("<html>")) }, "op: the NATS server at here gave an answer that can't be read: "},
	} {
		t.Run(tt.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				tries := 0
				err := (&caller{where: "here"}).callDuringSetup(t.Context(), "op", "s", func(context.Context) error {
					tries++
					return tt.try()
				})
				if err == nil || !strings.HasPrefix(err.Error(), tt.want) || errors.Is(err, job.ErrUnavailable) || tries != 1 {
					t.Errorf("got %v after %d tries, want %q at the first, and not ErrUnavailable", err, tries, tt.want)
				}
			})
		})
	}
}

// The end of a call's context does not hide why its tries failed.
func TestLastTryIsCutShort(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		tries := 0
		err := (&caller{}).callDuringSetup(ctx, "op", "s", func(ctx context.Context) error {
			if tries++; tries == 1 {
				return errSilent
			}
			<-ctx.Done()
			return ctx.Err()
		})
		if !errors.Is(err, errSilent) {
			t.Errorf("got %v, want the first try's error in it", err)
		}
	})
}

// A stored message that does not arrive ends the wait for it.
func TestReaderEnds(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		began := time.Now()
		_, err := (&Reader{Messages: make(chan jetstream.Msg)}).Next(t.Context())
		if took := time.Since(began); took != TryTimeout || !errors.Is(err, job.ErrUnavailable) {
			t.Errorf("got %v after %s, want ErrUnavailable after %s", err, took, TryTimeout)
		}
	})
}

// A silent partition is noticed within half a minute, no server is given up, and nothing is kept for later: a heartbeat or
// an acknowledgment that arrives late speaks for another's lease.
func TestOptions(t *testing.T) {
	t.Parallel()
	var o nats.Options
	for _, set := range (&Conn{calls: &caller{}}).options(t.Context(), Options{}) {
		if err := set(&o); err != nil {
			t.Fatal(err)
		}
	}
	if noticed := o.PingInterval * time.Duration(o.MaxPingsOut+1); noticed <= 0 || noticed > 30*time.Second {
		t.Errorf("a silent partition is noticed after %s, want 30s at most", noticed)
	}
	if o.MaxReconnect >= 0 || o.ReconnectBufSize >= 0 {
		t.Errorf("reconnects %d, buffer %d: want no end, and none", o.MaxReconnect, o.ReconnectBufSize)
	}
	if o.Timeout != TryTimeout {
		t.Errorf("timeout of the first connect: got %s, want %s", o.Timeout, TryTimeout)
	}
}

// Errors must not tell a password or a token.
func TestRedacted(t *testing.T) {
	t.Parallel()
	for in, want := range map[string]string{
		"nats://me:secret@host:4222":            "nats://me:xxxxx@host:4222",
		"nats://secret@host":                    "nats://host",
		"nats://a:secret@one, nats://secret@b2": "nats://a:xxxxx@one,nats://b2",
		"%zz":                                   "(not a URL)",
	} {
		if got := redacted(Options{URL: in}); got != want || strings.Contains(got, "secret") {
			t.Errorf("redacted(%q): got %q, want %q", in, got, want)
		}
	}
}
