package mock

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"go.uber.org/goleak"

	"slipway/container"
	"slipway/container/containertest"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// Without a test the mock answers to misuse as a real provider does.
func TestWithoutTest(t *testing.T) {
	p := New(nil)
	b, err := p.Create(t.Context(), container.Spec{Name: "demo", Image: "any"})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := b.Exec(t.Context(), container.Command{Args: []string{"true"}}); !errors.Is(err, container.ErrStopped) {
		t.Errorf("Exec before Start: got %v, want ErrStopped", err)
	}
	if err := b.Start(t.Context()); err != nil {
		t.Errorf("Start: got %v, want no error", err)
	}
	if x, err := b.Exec(t.Context(), container.Command{Args: []string{"true"}}); err != nil || !x.Success() {
		t.Errorf("Exec: got %+v, %v, want success", x, err)
	}
	if err := b.Remove(t.Context()); err != nil || len(p.Alive()) != 0 {
		t.Errorf("Remove: got %v, want no error; alive: %q, want none", err, p.Alive())
	}
}

// recorder is a testing.TB that remembers what it was failed for.
type recorder struct {
	testing.TB
	failures []string
	cleanups []func()
}

func (r *recorder) Helper() {}

func (r *recorder) Errorf(format string, args ...any) {
	r.failures = append(r.failures, fmt.Sprintf(format, args...))
}

func (r *recorder) Cleanup(fn func()) { r.cleanups = append(r.cleanups, fn) }

func (r *recorder) finish() []string {
	for _, fn := range slices.Backward(r.cleanups) {
		fn()
	}
	return r.failures
}

func started(t *testing.T, p *Provider) container.Sandbox {
	t.Helper()
	b, err := p.Create(t.Context(), container.Spec{Name: "slipway-a-1"})
	if err != nil {
		t.Fatal(err)
	}
	if err := b.Start(t.Context()); err != nil {
		t.Fatal(err)
	}
	return b
}

func remove(t *testing.T, b container.Sandbox) {
	t.Helper()
	if err := b.Remove(t.Context()); err != nil {
		t.Fatal(err)
	}
}

func run(t *testing.T, b container.Sandbox, cmd container.Command) (container.Exit, string) {
	t.Helper()
	var out strings.Builder
	cmd.Output = func(s container.Stream, p []byte) { fmt.Fprintf(&out, "%s:%s", s, p) }
	exit, err := b.Exec(t.Context(), cmd)
	if err != nil {
		t.Fatal(err)
	}
	return exit, out.String()
}

func TestReplies(t *testing.T) {
	p := New(t)
	p.On("go", Reply{Stdout: "short\n"})
	p.On("go test", Reply{Stderr: "FAIL\n", Code: 1}, Reply{Stdout: "ok\n"})
	p.On("boom", Reply{Code: 139, Signal: "SIGSEGV", OOM: true, Pids: true, Unwatched: true, Leftovers: 2})
	b := started(t, p)
	defer remove(t, b)
	tests := []struct {
		args []string
		code int
		out  string
	}{
		{[]string{"/bin/sh", "-e", "-c", "go test ./..."}, 1, "stderr:FAIL\n"},
		{[]string{"go", "test"}, 0, "stdout:ok\n"},
		{[]string{"go", "test"}, 0, "stdout:ok\n"},
		{[]string{"go", "vet"}, 0, "stdout:short\n"},
		{[]string{"boom"}, 139, ""},
		{[]string{"unknown"}, 127, ""},
	}
	for _, tt := range tests {
		exit, out := run(t, b, container.Command{Args: tt.args})
		if exit.Code != tt.code || out != tt.out {
			t.Errorf("%v: got %d %q, want %d %q", tt.args, exit.Code, out, tt.code, tt.out)
		}
	}
	if got, want := len(p.Commands()), len(tests); got != want {
		t.Errorf("commands: got %d, want %d", got, want)
	}
}

// TestClocks: the ladder of timeouts runs on the bubble's clock.
func TestClocks(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := New(t)
		p.On("hang", Reply{Hang: true})
		p.On("stubborn", Reply{Hang: true, IgnoreTERM: true})
		b := started(t, p)
		defer remove(t, b)
		tests := []struct {
			cmd    container.Command
			signal string
			took   time.Duration
		}{
			{container.Command{Args: []string{"hang"}, Timeout: time.Hour, Grace: time.Minute}, "SIGTERM", time.Hour},
			{container.Command{Args: []string{"stubborn"}, Timeout: time.Hour, Grace: time.Minute}, "SIGKILL", time.Hour + time.Minute},
			{container.Command{Args: []string{"sleep", "9999"}, Timeout: time.Hour}, "SIGKILL", time.Hour},
			{container.Command{Args: []string{"sleep", "1800"}, Timeout: time.Hour}, "", 30 * time.Minute},
		}
		for _, tt := range tests {
			begin := time.Now()
			exit, _ := run(t, b, tt.cmd)
			if took := time.Since(begin); exit.Signal != tt.signal || took != tt.took || exit.Duration != tt.took {
				t.Errorf("%v: got %s after %v, want %s after %v", tt.cmd.Args, exit.Signal, took, tt.signal, tt.took)
			}
		}
		ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
		defer cancel()
		exit, err := b.Exec(ctx, container.Command{Args: []string{"hang"}})
		if err != nil || !exit.Canceled || exit.Success() {
			t.Errorf("canceled: got %+v, %v", exit, err)
		}
	})
}

func TestLostBox(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := New(t)
		p.On("hang", Reply{Hang: true})
		p.On("fatal", Reply{Stdout: "last words", LoseBox: true})
		b := started(t, p)
		time.AfterFunc(time.Minute, func() { p.Lose("slipway-a-1") })
		if _, err := b.Exec(t.Context(), container.Command{Args: []string{"hang"}}); !errors.Is(err, container.ErrBoxLost) {
			t.Errorf("lost while running: got %v", err)
		}
		<-b.Done()
		if _, err := b.Files().Stat(t.Context(), "."); !errors.Is(err, container.ErrBoxLost) {
			t.Errorf("files of a lost box: got %v", err)
		}
		remove(t, b)
		b = started(t, p)
		defer remove(t, b)
		if _, err := b.Exec(t.Context(), container.Command{Args: []string{"fatal"}}); !errors.Is(err, container.ErrBoxLost) {
			t.Errorf("command that loses its box: got %v", err)
		}
	})
}

func TestFaults(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx, p := t.Context(), New(t)
		broken := container.ErrEngineUnavailable
		p.Fail(Fault{At: OnPrepare, Err: container.ErrImagePull, Times: 1})
		p.Fail(Fault{At: OnCreate, Err: broken, Times: 1, Happened: true})
		p.Fail(Fault{At: OnStart, Err: broken, Times: 1})
		p.Fail(Fault{At: OnFiles, Err: container.ErrNoSpace, Skip: 1, Times: 1})
		p.Fail(Fault{At: OnRemove, Delay: time.Hour, Times: 1})
		if _, err := p.Prepare(ctx, container.ImageRequest{Image: "x"}); !errors.Is(err, container.ErrImagePull) {
			t.Errorf("prepare: got %v", err)
		}
		spec := container.Spec{Name: "slipway-a-1"}
		if _, err := p.Create(ctx, spec); !errors.Is(err, broken) {
			t.Errorf("create: got %v", err)
		}
		if got := p.Alive(); len(got) != 1 {
			t.Errorf("a create that happened all the same: got %v alive, want one", got)
		}
		b, err := p.Create(ctx, spec)
		if err != nil {
			t.Fatalf("create over the ghost: %v", err)
		}
		if err := b.Start(ctx); !errors.Is(err, broken) {
			t.Errorf("start: got %v", err)
		}
		if err := b.Start(ctx); err != nil {
			t.Errorf("second start: got %v", err)
		}
		if err := b.Files().Write(ctx, "a", strings.NewReader("x"), 0o644); err != nil {
			t.Errorf("first write: got %v", err)
		}
		if err := b.Files().Write(ctx, "a", strings.NewReader("y"), 0o644); !errors.Is(err, container.ErrNoSpace) {
			t.Errorf("second write: got %v", err)
		}
		begin := time.Now()
		remove(t, b)
		if took := time.Since(begin); took != time.Hour {
			t.Errorf("slow removal took %v, want 1h", took)
		}
	})
}

func TestMisuseFailsTheTest(t *testing.T) {
	ctx := t.Context()
	cmd := container.Command{Args: []string{"true"}}
	tests := []struct {
		name string
		use  func(p *Provider)
		want string
	}{
		{"exec before start", func(p *Provider) {
			b, _ := p.Create(ctx, container.Spec{Name: "a"})
			_, _ = b.Exec(ctx, cmd)
			_ = b.Remove(ctx)
		}, "before its start"},
		{"exec after remove", func(p *Provider) {
			b, _ := p.Create(ctx, container.Spec{Name: "a"})
			_ = b.Start(ctx)
			_ = b.Remove(ctx)
			_, _ = b.Exec(ctx, cmd)
		}, "after its removal"},
		{"start twice", func(p *Provider) {
			b, _ := p.Create(ctx, container.Spec{Name: "a"})
			_ = b.Start(ctx)
			_ = b.Start(ctx)
			_ = b.Remove(ctx)
		}, "is started as running"},
		{"create over a running one", func(p *Provider) {
			b, _ := p.Create(ctx, container.Spec{Name: "a"})
			_ = b.Start(ctx)
			_, _ = p.Create(ctx, container.Spec{Name: "a"})
			_ = b.Remove(ctx)
		}, "while it runs"},
		{"left behind", func(p *Provider) {
			_, _ = p.Create(ctx, container.Spec{Name: "a"})
		}, "left at the end of the test: a"},
		{"nothing wrong", func(p *Provider) {
			b, _ := p.Create(ctx, container.Spec{Name: "a"})
			_ = b.Remove(ctx)
			_ = b.Remove(ctx)
		}, ""},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			r := &recorder{TB: t}
			tt.use(New(r))
			got := strings.Join(r.finish(), "; ")
			if tt.want == "" && got != "" || !strings.Contains(got, tt.want) {
				t.Errorf("got %q, want %q in it", got, tt.want)
			}
		})
	}
}

func TestConformance(t *testing.T) {
	containertest.Run(t, func(t *testing.T) container.Provider { return New(t).Lenient() },
		containertest.Options{Image: "any", Users: true})
}
