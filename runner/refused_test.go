package runner

import (
	"strings"
	"testing"

	"slipway/container"
	"slipway/job"
)

func TestAccept(t *testing.T) {
	t.Parallel()
	root := func(j *job.Job) { j.User = "0:0" }
	tests := []struct {
		name   string
		set    func(*job.Job)
		config func(*Config)
		reason job.Reason
		want   []string
	}{
		{"workspace without a store", func(j *job.Job) { j.Workspace = &job.Workspace{Prefix: "ws"} }, func(c *Config) { c.Store = nil }, job.ReasonPolicyDenied, []string{"workspace: this worker has no store configured", "s3.bucket"}},
		{"input without a store", func(j *job.Job) {
			j.Inputs = []job.Input{{Path: "f", Key: "k", SHA256: strings.Repeat("0", 64)}}
		}, func(c *Config) { c.Store = nil }, job.ReasonPolicyDenied, []string{"inputs[0].key"}},
		{"network", func(j *job.Job) { j.Network = job.NetworkOpen }, nil, job.ReasonPolicyDenied, []string{"network", "network_open"}},
		{"root", root, nil, job.ReasonPolicyDenied, []string{"user", "root_steps"}},
		{"root's group", func(j *job.Job) { j.Steps[0].User = "1000:0" }, nil, job.ReasonPolicyDenied, []string{"steps[0].user", "root_steps"}},
		{"root step", func(j *job.Job) { j.Steps[0].User = "0" }, nil, job.ReasonPolicyDenied, []string{"steps[0].user", "root_steps"}},
		{"writable root", func(j *job.Job) { j.Relax = []job.Relaxation{job.RelaxRootfsWritable} }, nil, job.ReasonPolicyDenied, []string{"relax: not allowed", "(key rootfs_writable)"}},
		{"relaxed by half", func(j *job.Job) {
			j.Relax = []job.Relaxation{job.RelaxRootfsWritable, job.RelaxSeccompDefault}
		}, func(c *Config) { c.Policy.Allow = []container.Relaxation{container.RelaxRootfsWritable} }, job.ReasonPolicyDenied, []string{"relax: not allowed", "(key seccomp_default)"}},
		{"memory", func(j *job.Job) { j.Resources.Memory = 1 << 40 }, nil, job.ReasonPolicyDenied, []string{"memory", "max.memory"}},
		{"image", func(*job.Job) {}, func(c *Config) { c.Policy.Images = []string{"ghcr.io/acme/"} }, job.ReasonPolicyDenied, []string{"image", "images"}},
		{"bytes", func(j *job.Job) { j.Resources.Memory = 2 << 30 }, func(c *Config) { c.Policy.Max.Memory = 1 << 30 }, job.ReasonPolicyDenied, []string{"2GiB asked for, 1GiB allowed"}},
		{"all at once", func(j *job.Job) {
			j.Network, j.User, j.Resources.CPUs, j.Resources.Tmp = job.NetworkOpen, "0:0", 100, 1<<30+1
			j.Resources.Memory, j.Workspace = 2<<30, &job.Workspace{Prefix: "ws"}
			j.Steps[0].User = "0" // said already
		}, func(c *Config) { c.Policy.Images, c.Store = []string{"ghcr.io/acme/"}, nil }, job.ReasonPolicyDenied, []string{
			`not allowed by this worker's policy: image (key images): "docker.io/library/alpine" is below none of the allowed prefixes; ` +
				`network (key network_open); user (key root_steps); resources.cpus (key max.cpus): 100 asked for, 8 allowed; ` +
				`resources.tmp (key max.tmp): 1073741825B asked for, 1GiB allowed; workspace: this worker has no store`,
		}},
		{"two steps", func(j *job.Job) {
			j.Steps[0].User = "0"
			j.Steps = append(j.Steps, j.Steps[0])
		}, nil, job.ReasonPolicyDenied, []string{"steps[0].user (key root_steps)", "; steps[1].user (key root_steps)"}},
		{"another id", func(j *job.Job) { j.ID = "01M8HE00000000000000000009" }, nil, job.ReasonSpecInvalid, []string{"id: the spec says 01M8HE00000000000000000009"}},
		{"another queue", func(j *job.Job) { j.Queue = "elsewhere" }, nil, job.ReasonSpecInvalid, []string{"queue: the spec says elsewhere", "submitted to"}},
		{"no steps", func(j *job.Job) { j.Steps = nil }, nil, job.ReasonSpecInvalid, []string{"steps"}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			scenario(t, func(b *bundle) {
				if tt.config != nil {
					tt.config(&b.cfg)
				}
				j := jobOf(run("say a"))
				tt.set(j)
				r := b.want(b.do(j), job.Errored, tt.reason)
				for _, want := range tt.want {
					if !strings.Contains(r.Message, want) {
						t.Errorf("got message %q, want it to contain %q", r.Message, want)
					}
				}
				if len(b.boxes.specs) != 0 {
					t.Error("a box was made")
				}
			})
		})
	}
}

// TestMatches: what a spec leaves out contradicts nothing, and neither does a queue that tells no queue of its jobs.
func TestMatches(t *testing.T) {
	t.Parallel()
	const id, other = "01M8HE00000000000000000001", "01M8HE00000000000000000002"
	tests := []struct {
		name string
		spec job.Job
		of   job.Delivery
		want string // part of the error; "": none
	}{
		{"nothing said", job.Job{}, job.Delivery{ID: id, Queue: "q"}, ""},
		{"all the same", job.Job{ID: id, Queue: "q"}, job.Delivery{ID: id, Queue: "q"}, ""},
		{"another id", job.Job{ID: other}, job.Delivery{ID: id}, "id: the spec says " + other},
		{"another queue", job.Job{Queue: "r"}, job.Delivery{ID: id, Queue: "q"}, "queue: the spec says r"},
		{"a queue without a name", job.Job{Queue: "r"}, job.Delivery{ID: id}, ""},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			got := ""
			if err := matches(&tt.spec, tt.of); err != nil {
				got = err.Error()
			}
			if (tt.want == "") != (got == "") || !strings.Contains(got, tt.want) {
				t.Errorf("got %q, want %q", got, tt.want)
			}
		})
	}
}
