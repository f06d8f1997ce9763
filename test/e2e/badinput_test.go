package e2e

import (
	"context"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/nats-io/nats.go/jetstream"

	"slipway/job"
)

// TestBadInput: what is wrong is said with its name and the next step, and nothing is lost.
func TestBadInput(t *testing.T) {
	b := setup(t, shellImage)
	b.startWorker(t, "strict")

	t.Run("invalid spec is refused by submit with line, column and field", func(t *testing.T) {
		_, errOut, code := b.submit(t, "image: x\nsteps:\n  - run: true\n    timeut: 3s\n", "run", "-")
		if code != 2 {
			t.Errorf("exit code: got %d, want 2", code)
		}
		for _, want := range []string{"line 4", "steps[0].timeut", "timeout"} {
			if !strings.Contains(errOut, want) {
				t.Errorf("message: got %q, want it to contain %q", errOut, want)
			}
		}
	})

	t.Run("invalid spec that arrives by another way ends as spec_invalid", func(t *testing.T) {
		id := job.NewID()
		b.publishRaw(t, id, []byte(`{"image":"busybox:1.36","steps":[{"rum":"true"}]}`))
		r := b.result(t, id)
		if r.Outcome != job.Errored || r.Reason != job.ReasonSpecInvalid || !strings.Contains(r.Message, "steps[0].rum") {
			t.Errorf("got %s/%s %q, want errored/spec_invalid naming steps[0].rum", r.Outcome, r.Reason, r.Message)
		}
	})

	t.Run("command that fails", func(t *testing.T) {
		out, _, code := b.submit(t, "image: busybox:1.36\nsteps: [{run: exit 7}]\n", "run", "--output", "json", "-")
		r := lastResult(t, out)
		if code != 1 || r.Outcome != job.Failed || r.Reason != job.ReasonExit || r.Steps[0].ExitCode == nil || *r.Steps[0].ExitCode != 7 {
			t.Errorf("got code %d, %s/%s, want 1 and failed/exit with exit code 7", code, r.Outcome, r.Reason)
		}
	})

	t.Run("unknown image", func(t *testing.T) {
		out, _, code := b.submit(t, "image: slipway.invalid/no/such:image\npull: never\nsteps: [{run: 'true'}]\n", "run", "--output", "json", "-")
		r := lastResult(t, out)
		if code != 3 || r.Outcome != job.Errored || r.Reason != job.ReasonImageNotFound || !strings.Contains(r.Message, "slipway.invalid/no/such:image") {
			t.Errorf("got code %d, %s/%s %q, want 3 and errored/image_not_found naming the image", code, r.Outcome, r.Reason, r.Message)
		}
	})

	t.Run("what the policy does not allow", func(t *testing.T) {
		out, _, code := b.submit(t, "image: busybox:1.36\nnetwork: open\nsteps: [{run: 'true'}]\n", "run", "--output", "json", "-")
		r := lastResult(t, out)
		if code != 3 || r.Reason != job.ReasonPolicyDenied || !strings.Contains(r.Message, "network_open") {
			t.Errorf("got code %d, %s/%s %q, want 3 and errored/policy_denied naming network_open", code, r.Outcome, r.Reason, r.Message)
		}
	})
}

// TestUnreachable: each part that is away is named by its setting.
func TestUnreachable(t *testing.T) {
	b := setup(t, shellImage)
	tests := []struct {
		name    string
		program string
		args    []string
		env     string
		code    int
		want    []string
	}{
		{"submit without NATS", "submit", []string{"status", string(job.NewID())}, "SLIPWAY_NATS_URL=nats://127.0.0.1:1", 3, []string{"SLIPWAY_NATS_URL", "127.0.0.1:1"}},
		{"worker without NATS", "worker", []string{"serve"}, "SLIPWAY_NATS_URL=nats://127.0.0.1:1", 3, []string{"SLIPWAY_NATS_URL"}},
		{"worker without engine", "worker", []string{"serve"}, "DOCKER_HOST=tcp://127.0.0.1:1", 3, []string{"DOCKER_HOST"}},
		{"worker without store", "worker", []string{"serve"}, "SLIPWAY_S3_ENDPOINT=http://127.0.0.1:1", 3, []string{"SLIPWAY_S3_ENDPOINT"}},
		{"worker without bucket", "worker", []string{"serve", "--s3-create-bucket=false"}, "SLIPWAY_S3_BUCKET=no-such-bucket", 3, []string{"no-such-bucket", "SLIPWAY_S3_BUCKET"}},
		{"worker with wrong credentials", "worker", []string{"serve"}, "SLIPWAY_S3_SECRET_KEY=wrong", 3, []string{"SLIPWAY_S3_"}},
		{"run without engine", "worker", []string{"run", filepath.Join(b.root, "examples/hello.yaml")}, "DOCKER_HOST=tcp://127.0.0.1:1", 3, []string{"--allow-local"}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
			defer cancel()
			cmd := exec.CommandContext(ctx, filepath.Join(b.bin, tt.program), tt.args...)
			cmd.Env = append(b.env(), tt.env, "SLIPWAY_METRICS_ADDR=127.0.0.1:"+freePort(t))
			out, _ := cmd.CombinedOutput()
			if got := cmd.ProcessState.ExitCode(); got != tt.code {
				t.Errorf("exit code: got %d, want %d\n%s", got, tt.code, out)
			}
			for _, want := range tt.want {
				if !strings.Contains(string(out), want) {
					t.Errorf("message lacks %q:\n%s", want, out)
				}
			}
		})
	}
}

// TestJobsWaitForAWorker: what is submitted while no worker runs is run by the first that comes.
func TestJobsWaitForAWorker(t *testing.T) {
	b := setup(t, shellImage)
	b.startWorker(t, "once").stop() // makes the queue's streams
	id := b.create(t, sleep("0"))
	b.startWorker(t, "later")
	if r := b.result(t, id); r.Outcome != job.Succeeded {
		t.Errorf("got %s (%s), want succeeded", r.Outcome, r.Message)
	}
}

// publishRaw puts bytes into the queue that no client of ours would send.
func (b *bundle) publishRaw(t *testing.T, id job.ID, spec []byte) {
	t.Helper()
	b.js(t, func(js jetstream.JetStream) error {
		_, err := js.Publish(t.Context(), "slipway.J.default.normal."+string(id), spec)
		return err
	})
}
