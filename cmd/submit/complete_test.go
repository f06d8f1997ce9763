package main

import (
	"context"
	"strings"
	"testing"
	"time"

	"slipway/job/natsqueue"
)

// completed is what the shell is offered after args, the last of which is the word that was begun.
func (b *bundle) completed(args ...string) []string {
	b.t.Helper()
	out, errOut, code := b.run(append([]string{"__complete"}, args...)...)
	if code != 0 || strings.Contains(errOut, "rror") {
		b.t.Errorf("%v: code %d, stderr %q", args, code, errOut)
	}
	lines := strings.Split(strings.TrimSpace(out), "\n")
	return lines[:len(lines)-1] // the last one tells the shell how to go on
}

func TestCompletion(t *testing.T) {
	b := setup(t)
	conn := b.withQueue()
	b.withHome()
	b.must("context", "add", "prod", "--queue", "default")
	one := strings.TrimSpace(b.must("create", "--name", "one", b.file("image: x\nsteps: [{run: 'true'}]\n")))
	two := strings.TrimSpace(b.must("create", "--name", "two", b.file("image: x\nsteps: [{run: 'true'}]\n")))
	b.must("cancel", one)
	b.run("result", "--wait", one)
	consumer, err := conn.Consumer(t.Context(), natsqueue.ConsumerConfig{Worker: "w1"}) // of a worker that takes no jobs
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = consumer.Close(context.WithoutCancel(t.Context())) }()
	for name, tc := range map[string]struct {
		args []string
		want []string // the beginnings of the lines
	}{
		"all, newest first":    {[]string{"status", ""}, []string{two + "\tqueued", one + "\tcanceled"}},
		"the beginning of one": {[]string{"logs", strings.ToLower(one)}, []string{one}},
		"what can be canceled": {[]string{"cancel", ""}, []string{two}},
		"one is enough":        {[]string{"result", one, ""}, nil},
		"dead":                 {[]string{"dead", "requeue", ""}, nil},
		"states":               {[]string{"list", "--state", "time"}, []string{"scheduled", "queued", "running", "done", "failed", "timed_out", "canceled", "errored"}},
		"priorities":           {[]string{"create", "--priority", ""}, []string{"high", "normal", "low"}},
		"contexts":             {[]string{"--context", ""}, []string{"prod"}},
		"contexts to use":      {[]string{"context", "use", ""}, []string{"prod"}},
		"files":                {[]string{"run", ""}, []string{"yaml", "yml", "json"}},
		"queues":               {[]string{"list", "--queue", ""}, []string{"default"}},
	} {
		got := b.completed(tc.args...)
		ok := len(got) == len(tc.want)
		for i := range got {
			ok = ok && strings.HasPrefix(got[i], tc.want[i])
		}
		if !ok {
			t.Errorf("%s: got %q, want %q", name, got, tc.want)
		}
	}
}

// TestCompletion_Away: a queue that is away, or settings that make no sense, offer nothing, soon.
func TestCompletion_Away(t *testing.T) {
	b := setup(t)
	for _, environ := range []string{"SLIPWAY_NATS_URL=nats://127.0.0.1:1", "SLIPWAY_NATS_URL=nats://192.0.2.1:4222", "SLIPWAY_NATS_URL=http://x", "SLIPWAY_CONTEXT=nope"} {
		b.app.sys.Environ = []string{environ, "HOME=" + t.TempDir()}
		begun := time.Now()
		if got := b.completed("status", ""); len(got) != 0 {
			t.Errorf("%s: got %q, want nothing", environ, got)
		}
		if took := time.Since(begun); took > 5*completeTime { // of a loaded machine
			t.Errorf("%s: it took %v, want about %v", environ, took, completeTime)
		}
	}
}

// TestCompletion_Scripts: each shell has one.
func TestCompletion_Scripts(t *testing.T) {
	b := setup(t)
	for _, shell := range []string{"bash", "zsh", "fish"} {
		if out := b.must("completion", shell); !strings.Contains(out, "__complete") {
			t.Errorf("%s: got %.80q, want a script", shell, out)
		}
	}
}
