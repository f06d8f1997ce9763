package containertest

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"slipway/container"
	"slipway/test/eventually"
)

// Options says what the provider can do.
type Options struct {
	// Image is what boxes are made of, as a job would name it. It must be on the engine.
	Image string
	// Shell: boxes run real processes, and have sh with setsid, nohup, sleep, touch, dd, ln, mkfifo,
	// kill. Without it only true, false, echo, cat, env, pwd, id, sleep are used.
	Shell bool
	// Users: commands run as the user that they ask for.
	Users bool
}

// Run runs the suite. factory makes a provider for one test, and cleans up after it by t.Cleanup.
func Run(t *testing.T, factory func(t *testing.T) container.Provider, opts Options) {
	tests := []struct {
		name  string
		needs bool
		run   func(t *testing.T, k kit)
	}{
		{"lifecycle", true, testLifecycle},
		{"create is idempotent by name", true, testCreateTwice},
		{"remove is idempotent", true, testRemove},
		{"stop", true, testStop},
		{"list by labels", true, testList},
		{"bad specs", true, testBadSpecs},
		{"prepare", true, testPrepare},
		{"exec", true, testExec},
		{"exec with another user", opts.Users, testUsers},
		{"exec bad commands", true, testBadCommands},
		{"exec timeout", true, testTimeout},
		{"exec cancel", true, testCancel},
		{"exec in parallel", true, testParallel},
		{"exec in a dead box", true, testDeadBox},
		{"shell: signals", opts.Shell, testSignals},
		{"shell: streams", opts.Shell, testStreams},
		{"shell: grace", opts.Shell, testGrace},
		{"shell: whole tree", opts.Shell, testTree},
		{"shell: leftovers", opts.Shell, testLeftovers},
		{"shell: output after the command", opts.Shell, testLateOutput},
		{"files", true, testFiles},
		{"files: bad paths", true, testPaths},
		{"files: bulk", true, testBulk},
		{"files: walk and hash", true, testWalk},
		{"files: failing reader", true, testBrokenWrite},
		{"files: from commands", opts.Shell, testFilesOfCommands},
	}
	for _, tt := range tests {
		if !tt.needs {
			continue
		}
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel() // they wait more than they work
			tt.run(t, newKit(t, factory(t), opts))
		})
	}
}

// kit is what one test works with.
type kit struct {
	container.Provider
	opts  Options
	image string
}

func newKit(t *testing.T, p container.Provider, opts Options) kit {
	t.Helper()
	img, err := p.Prepare(t.Context(), container.ImageRequest{Image: opts.Image, Pull: container.PullNever})
	if err != nil {
		t.Fatalf("prepare %s: %v", opts.Image, err)
	}
	return kit{p, opts, img.ID}
}

func (k kit) spec() container.Spec {
	return container.Spec{
		Name: "slipway-suite-" + strings.ToLower(rand.Text()[:10]), Image: k.image,
		Labels: map[string]string{container.LabelWorker: "suite"},
	}
}

func (k kit) create(t *testing.T, spec container.Spec) container.Sandbox {
	t.Helper()
	b, err := k.Create(t.Context(), spec)
	if err != nil {
		t.Fatalf("create: %v", err)
	}
	t.Cleanup(func() {
		ctx, cancel := context.WithTimeout(context.WithoutCancel(t.Context()), time.Minute)
		defer cancel()
		if err := b.Remove(ctx); err != nil {
			t.Errorf("remove at the end: %v", err)
		}
	})
	return b
}

func (k kit) box(t *testing.T) container.Sandbox {
	t.Helper()
	b := k.create(t, k.spec())
	if err := b.Start(t.Context()); err != nil {
		t.Fatalf("start: %v", err)
	}
	return b
}

// output is what a command printed.
type output struct{ stdout, stderr strings.Builder }

func (o *output) add(s container.Stream, p []byte) {
	if s == container.Stderr {
		o.stderr.Write(p)
		return
	}
	o.stdout.Write(p)
}

// exec runs cmd, which must have an Exit, within a minute.
func exec(t *testing.T, b container.Sandbox, cmd container.Command) (container.Exit, *output) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	out := &output{}
	cmd.Output = out.add
	exit, err := b.Exec(ctx, cmd)
	if err != nil {
		t.Fatalf("exec %q: %v", cmd.Args, err)
	}
	if ctx.Err() != nil {
		t.Fatalf("exec %q took a minute", cmd.Args)
	}
	return exit, out
}

func sh(script string) container.Command {
	return container.Command{Args: []string{"sh", "-c", script}}
}

// is fails t unless err matches one of the targets.
func is(t *testing.T, what string, err error, targets ...error) {
	t.Helper()
	if !slices.ContainsFunc(targets, func(target error) bool { return errors.Is(err, target) }) {
		t.Errorf("%s: got error %v, want %s", what, err, oneOf(targets))
	}
}

// oneOf names the errors that would be right.
func oneOf(targets []error) string {
	words := make([]string, len(targets))
	for i, target := range targets {
		if words[i] = "none"; target != nil {
			words[i] = fmt.Sprintf("one that matches %q", target)
		}
	}
	return strings.Join(words, " or ")
}

func must(t *testing.T, what string, err error) {
	t.Helper()
	if err != nil {
		t.Fatalf("%s: got error %v, want none", what, err)
	}
}

// closes fails t unless the box ends soon.
func closes(t *testing.T, b container.Sandbox) {
	t.Helper()
	select {
	case <-b.Done():
	case <-time.After(eventually.Patience):
		t.Errorf("Done is not closed %v after the end", eventually.Patience)
	}
}

// pause gives what cannot be watched from here time to happen.
func pause(t *testing.T, d time.Duration) {
	t.Helper()
	select {
	case <-time.After(d):
	case <-t.Context().Done():
	}
}
