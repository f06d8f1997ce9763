package agreement

import (
	"testing"

	"slipway/container"
	"slipway/job"
	wsync "slipway/sync"
)

// TestWorkdir: a job with a working directory is valid exactly if a box can have it.
func TestWorkdir(t *testing.T) {
	for _, dir := range []string{
		"/workspace", "/work/a", "/home/me", "/srv", "/data", "/testbed", "/app", "/opt/x", "/var/lib/x", "/usr/src/app", "/mnt",
		"/", "/usr", "/usr/bin", "/bin", "/lib", "/lib64", "/sbin", "/etc", "/etc/x", "/proc", "/proc/1/root", "/sys", "/sys/fs", "/dev", "/dev/shm",
		"/tmp", "/tmp/x", "/run", "/run/x", "/var", "/var/run", "/boot", "/root", "/home", "/.slipway", "/.slipway/x",
		"relative", "/a/../etc", "/a//b", "/a/", "/a/./b", "/a\x00b", "/a\nb", "",
	} {
		j := &job.Job{Image: "x", Workdir: dir, Steps: []job.Step{{Run: "true"}}}
		inJob := j.WithDefaults().Validate() == nil
		inBox := container.Spec{Name: "x", Workdir: dir}.Validate() == nil
		if inJob != inBox {
			t.Errorf("workdir %q: valid in a job: %v, in a box: %v; the lists in job and container differ", dir, inJob, inBox)
		}
	}
}

// TestWords: values that a job and a box share by text.
func TestWords(t *testing.T) {
	pairs := map[string]string{
		string(job.NetworkNone): string(container.NetworkNone),
		string(job.NetworkOpen): string(container.NetworkOpen),
		string(job.PullAlways):  string(container.PullAlways),
		string(job.PullMissing): string(container.PullMissing),
		string(job.PullNever):   string(container.PullNever),
		job.DefaultWorkdir:      container.DefaultWorkdir,
		"added":                 string(wsync.Added),
		"modified":              string(wsync.Modified),
		"deleted":               string(wsync.Deleted),
	}
	for inJob, elsewhere := range pairs {
		if inJob != elsewhere {
			t.Errorf("got %q and %q for the same thing", inJob, elsewhere)
		}
	}
}
