package e2e

import (
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/nats-io/nats.go/jetstream"

	"slipway/job"
	"slipway/job/natsqueue/natsserver"
	"slipway/test/eventually"
)

// TestStoreFull: the store of the server takes nothing any more while a job ends. The job is not run again: its worker, or
// the one after it, commits its result once there is room. Meanwhile everybody hears what is full.
func TestStoreFull(t *testing.T) {
	t.Parallel() // it waits more than it works
	b := setup(t, shellImage)
	srv, err := natsserver.Start(natsserver.Options{Dir: t.TempDir(), MaxStore: 64 << 20})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(srv.Close)
	b.natsURL = srv.ClientURL()
	limits := []string{
		"--nats-max-job-bytes=8MiB", "--nats-max-scheduled-bytes=4MiB", "--nats-events-bytes=8MiB",
		"--nats-results-bytes=8MiB", "--nats-dead-bytes=4MiB", "--nats-records-bytes=8MiB",
	}
	state := t.TempDir()
	args := append([]string{"--state-dir", state}, limits...)
	w := b.startWorker(t, "full", args...)

	lives := b.create(t, sleep("5"))
	b.waitOutput(t, lives, "started")
	b.fillStore(t)
	w.seen(t, "waits for room")
	if _, errOut, code := b.submit(t, sleep("0"), "create", "-"); code != 3 || !strings.Contains(errOut, "queue is full") {
		t.Errorf("create: code %d, %s; want 3 and what is full", code, errOut)
	}
	out, errOut, code := b.submit(t, "", "cancel", string(lives))
	if code != 3 || !strings.Contains(errOut, "queue is full") {
		t.Errorf("cancel: code %d, %s%s; want 3 and what is full", code, out, errOut)
	}
	t.Logf("cancel: %s", strings.TrimSpace(errOut))
	b.showDoctor(t, limits...)
	b.purgeForeign(t)
	b.wantFirstAttempt(t, lives)

	killed := b.create(t, sleep("5"))
	b.waitOutput(t, killed, "started")
	b.fillStore(t)
	kept := filepath.Join(state, "outbox", "slipway", string(killed)+"-1-1.json")
	eventually.True(t, time.Minute, "the result is on disk", func() bool { _, err := os.Stat(kept); return err == nil })
	w.kill()
	<-w.ended
	b.purgeForeign(t)
	next := b.startWorker(t, "next", args...)
	b.wantFirstAttempt(t, killed)
	eventually.True(t, time.Minute, "the outbox is empty", func() bool { _, err := os.Stat(kept); return errors.Is(err, os.ErrNotExist) })
	for line := range strings.SplitSeq(next.log.String(), "\n") {
		if strings.Contains(line, "from the outbox") {
			t.Logf("log: %s", line)
		}
	}
	for line := range strings.SplitSeq(next.scrape(), "\n") {
		if strings.HasPrefix(line, "slipway_outbox_") || strings.HasPrefix(line, "slipway_queue_stored_bytes") {
			t.Logf("metric: %s", line)
		}
	}
}

// wantFirstAttempt wants the job to succeed at its first attempt, with one result.
func (b *bundle) wantFirstAttempt(t *testing.T, id job.ID) {
	t.Helper()
	if r := b.result(t, id); r.Outcome != job.Succeeded || r.Attempt != 1 {
		t.Errorf("got %s (%s) in attempt %d, want succeeded in the first", r.Outcome, r.Message, r.Attempt)
	}
	b.assertOneResult(t, id)
}

// fillStore has a foreign stream take what is left of the server's store.
func (b *bundle) fillStore(t *testing.T) {
	t.Helper()
	b.js(t, func(js jetstream.JetStream) error {
		if _, err := js.CreateOrUpdateStream(t.Context(), jetstream.StreamConfig{Name: "foreign", Subjects: []string{"foreign"}}); err != nil {
			return err
		}
		for {
			_, err := js.Publish(t.Context(), "foreign", make([]byte, 512<<10))
			var api *jetstream.APIError
			if errors.As(err, &api) && api.ErrorCode == 10023 {
				return nil
			}
			if err != nil {
				return err
			}
		}
	})
}

// purgeForeign gives the room back.
func (b *bundle) purgeForeign(t *testing.T) {
	t.Helper()
	b.js(t, func(js jetstream.JetStream) error {
		s, err := js.Stream(t.Context(), "foreign")
		if err != nil {
			return err
		}
		return s.Purge(t.Context())
	})
}

// showDoctor prints what worker doctor says of the queue, which has to name what is full.
func (b *bundle) showDoctor(t *testing.T, args ...string) {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), filepath.Join(b.bin, "worker"), append([]string{"doctor"}, args...)...)
	cmd.Env = b.env()
	out, err := cmd.CombinedOutput()
	if cmd.ProcessState == nil || cmd.ProcessState.ExitCode() != 1 || !strings.Contains(string(out), "queue is full") || !strings.Contains(string(out), "KV_slipway-jobs has") {
		t.Errorf("worker doctor: %v\n%s\nwant a failure that says what is full", err, out)
	}
	t.Logf("worker doctor:\n%s", out)
}
