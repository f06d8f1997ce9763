package devchild

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"io"
	"strings"
	"testing"
	"testing/synctest"

	"slipway/internal/devprotocol"
)

// bundle is a program whose server is a fake.
type bundle struct {
	Program
	set    devprotocol.Settings // what the server was started with
	closed int
	ended  chan struct{}
	report report
}

type report struct{ bytes.Buffer }

func (*report) Close() error { return nil }

func setup(startErr error) *bundle {
	b := &bundle{ended: make(chan struct{})}
	b.Name = "program"
	b.Start = func(_ context.Context, set devprotocol.Settings) (Server, error) {
		b.set = set
		return Server{Addr: "host:1", Ended: b.ended, Err: func() error { return errServer }, Close: func() { b.closed++ }}, startErr
	}
	return b
}

var errServer = errors.New("out of luck")

func settings(t *testing.T, set devprotocol.Settings) io.Reader {
	t.Helper()
	line, err := json.Marshal(set)
	if err != nil {
		t.Fatal(err)
	}
	return bytes.NewReader(append(line, '\n'))
}

// TestServe: the server runs from the settings until stdin ends.
func TestServe(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := setup(nil)
		want := devprotocol.Settings{Version: devprotocol.Version, Dir: "/dir", Addr: "host:0", User: "u", Password: "p"}
		stdin, parent := io.Pipe()
		done := make(chan error, 1)
		go func() { done <- b.serve(t.Context(), io.MultiReader(settings(t, want), stdin), &b.report) }()
		synctest.Wait()
		var r devprotocol.Report
		if err := json.Unmarshal(b.report.Bytes(), &r); err != nil || r != (devprotocol.Report{Addr: "host:1"}) || b.set != want {
			t.Errorf("started with %+v, reported %+v, %v, want %+v and host:1", b.set, r, err, want)
		}
		select {
		case err := <-done:
			t.Fatalf("ended while stdin is open: %v", err)
		default:
		}
		parent.Close()
		if err := <-done; err != nil || b.closed != 1 {
			t.Errorf("after the end of stdin: got error %v, closed %d times, want nil, once", err, b.closed)
		}
	})
}

// TestServe_Ends: a server that ends by itself ends the program.
func TestServe_Ends(t *testing.T) {
	b := setup(nil)
	stdin, parent := io.Pipe()
	defer parent.Close()
	close(b.ended)
	err := b.serve(t.Context(), io.MultiReader(settings(t, devprotocol.Settings{Version: devprotocol.Version}), stdin), &b.report)
	if !errors.Is(err, errServer) || b.closed != 1 {
		t.Errorf("got error %v, closed %d times, want %v, once", err, b.closed, errServer)
	}
}

// TestServe_Refuses: what can't be started is an error and no report.
func TestServe_Refuses(t *testing.T) {
	good := devprotocol.Settings{Version: devprotocol.Version}
	for name, c := range map[string]struct {
		in       io.Reader
		startErr error
		want     string
	}{
		"nothing":         {strings.NewReader(""), nil, "read the settings"},
		"no JSON":         {strings.NewReader("hello\n"), nil, "read the settings"},
		"another version": {settings(t, devprotocol.Settings{Version: devprotocol.Version + 1}), nil, "make build"},
		"start fails":     {settings(t, good), errServer, errServer.Error()},
	} {
		b := setup(c.startErr)
		err := b.serve(t.Context(), c.in, &b.report)
		if err == nil || !strings.Contains(err.Error(), c.want) || b.report.Len() > 0 {
			t.Errorf("%s: got error %v, reported %q, want %q and nothing", name, err, &b.report, c.want)
		}
	}
}

// TestUsage: a person who starts the program by hand is told what it is.
func TestUsage(t *testing.T) {
	p := Program{Name: "program", About: "A server."}
	var out strings.Builder
	p.usage(&out)
	if !strings.HasPrefix(out.String(), "program ") || !strings.Contains(out.String(), "A server.") {
		t.Errorf("got %q", out.String())
	}
}
