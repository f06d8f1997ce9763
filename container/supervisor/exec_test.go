package supervisor

import (
	"context"
	"errors"
	"reflect"
	"testing"
	"testing/synctest"
	"time"

	"slipway/container"
	"slipway/container/supervisor/internal/wire"
)

// What can't be a command is refused before the box hears of it.
func TestExecBadCommand(t *testing.T) {
	s, p := connect(t)
	for name, cmd := range map[string]container.Command{
		"no arguments":                   {},
		"no program":                     {Args: []string{""}},
		"zero byte in an argument":       {Args: []string{"a", "b\x00c"}},
		"argument that begins with zero": {Args: []string{"\x00"}},
		"variable with an equals sign":   {Args: []string{"a"}, Env: map[string]string{"A=B": ""}},
		"variable with a zero byte":      {Args: []string{"a"}, Env: map[string]string{"A\x00": ""}},
		"variable without a name":        {Args: []string{"a"}, Env: map[string]string{"": "b"}},
		"zero byte in a value":           {Args: []string{"a"}, Env: map[string]string{"A": "b\x00"}},
		"value that begins with zero":    {Args: []string{"a"}, Env: map[string]string{"A": "\x00"}},
		"timeout below zero":             {Args: []string{"a"}, Timeout: -1},
		"grace below zero":               {Args: []string{"a"}, Grace: -1},
	} {
		if _, err := s.Exec(t.Context(), cmd); !errors.Is(err, container.ErrSpec) {
			t.Errorf("%s: got %v, want ErrSpec", name, err)
		}
	}
	go p.answer(nil, wire.Exit{Code: 3}.Encode())
	cmd := container.Command{Args: []string{"a", ""}, Env: map[string]string{"A": ""}}
	if x, err := s.Exec(t.Context(), cmd); err != nil || x.Code != 3 {
		t.Errorf("a good command afterwards: got %+v, %v; want code 3", x, err)
	}
	if n := len(p.opened); n != 0 {
		t.Errorf("the box heard of %d more commands, want none", n)
	}
}

func TestWireCommand(t *testing.T) {
	for _, tt := range []struct {
		name string
		in   container.Command
		want wire.Command
	}{
		{"the box's user, no input", container.Command{Args: []string{"a"}}, wire.Command{Args: []string{"a"}, Env: []string{}, UID: -1, GID: -1}},
		{
			"all is set",
			container.Command{
				Args: []string{"a", "b"}, Dir: "d", Env: map[string]string{"B": "2", "A": "1"}, User: &container.User{UID: 0, GID: 5},
				Timeout: time.Minute, Grace: time.Second, Stdin: []byte("x"),
			},
			wire.Command{Args: []string{"a", "b"}, Dir: "d", Env: []string{"A=1", "B=2"}, UID: 0, GID: 5, Timeout: time.Minute, Grace: time.Second, Stdin: true},
		},
	} {
		if got := (&Session{}).command(tt.in); !reflect.DeepEqual(got, tt.want) {
			t.Errorf("%s: got %+v, want %+v", tt.name, got, tt.want)
		}
	}
}

// A box that reads nothing more is not told of a cancel, and has no longer for that.
func TestCancelOfDeafBox(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s, _ := connect(t, func(p *peer) { p.deaf, p.config.DeadMan = true, time.Hour })
		ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
		defer cancel()
		begin := time.Now()
		_, err := s.Exec(ctx, command(func(c *container.Command) { c.Grace = 5 * time.Second }))
		if took, want := time.Since(begin), time.Minute+5*time.Second+silentMargin; !errors.Is(err, container.ErrBoxLost) || took != want {
			t.Errorf("got %v after %v, want ErrBoxLost after %v", err, took, want)
		}
	})
}

func TestSignalName(t *testing.T) {
	for n, want := range map[int]string{-1: "", 0: "", 1: "SIGHUP", 9: "SIGKILL", 15: "SIGTERM", 31: "SIGSYS", 32: "SIG32", 64: "SIG64"} {
		if got := signalName(n); got != want {
			t.Errorf("%d: got %q, want %q", n, got, want)
		}
	}
	for n, name := range signals {
		if n > 0 && name == "" {
			t.Errorf("signal %d has no name", n)
		}
	}
}
