package e2e

import (
	"bytes"
	"context"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"slipway/job"
	"slipway/test/eventually"
)

// TestCodingTask: the three jobs of examples/coding-task, by the commands of its README.
func TestCodingTask(t *testing.T) {
	b := setup(t, goImage)
	w := b.startWorker(t, "coder")

	seeded := b.runJob(t, b.seed(t), "-")
	if seeded.Workspace == nil || seeded.Workspace.FilesPushed < 10 {
		t.Fatalf("seed pushed %+v, want the module's files", seeded.Workspace)
	}

	fixed := b.runJob(t, "", filepath.Join(b.root, "examples/coding-task/fix.yaml"))
	var changes []string
	for _, c := range fixed.Workspace.Changes {
		changes = append(changes, c.Kind+" "+c.Path)
	}
	t.Logf("pushed by the coding task: %s", strings.Join(changes, ", "))
	if want := []string{"modified doc.go", "added nil.go", "added nil_test.go"}; !slices.Equal(changes, want) {
		t.Errorf("pushed: got %q, want %q", changes, want)
	}
	if ws := fixed.Workspace; ws.FilesPushed != 3 || ws.FilesDeleted != 0 || ws.FilesPulled != seeded.Workspace.FilesPushed || ws.Base != seeded.Workspace.Commit {
		t.Errorf("workspace: got %+v, want 3 pushed, 0 deleted, the seed's files pulled from its commit", ws)
	}
	if n := b.countResults(t, fixed.JobID); n != 1 {
		t.Errorf("results of job %s: got %d, want 1", fixed.JobID, n)
	}

	checked := b.runJob(t, "", filepath.Join(b.root, "examples/coding-task/check.yaml"))
	if checked.Workspace.Base != fixed.Workspace.Commit {
		t.Errorf("second job on the workspace: base %s, want the commit of the first, %s", checked.Workspace.Base, fixed.Workspace.Commit)
	}
	if got := checked.Steps[0].Output.Head; !strings.Contains(got, "func (uuid UUID) IsNil() bool") {
		t.Errorf("second job reads nil.go: got %q, want the pushed function", got)
	}
	// The reader may see the result before the worker has counted it.
	eventually.True(t, 15*time.Second, "the worker is idle again", func() bool { return strings.Contains(w.scrape(), "\nslipway_slots_busy 0\n") })
	assertMetrics(t, w.scrape())
}

// seed returns the job that puts a public module's source into the workspace.
func (b *bundle) seed(t *testing.T) string {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), hang)
	defer cancel()
	cmd := exec.CommandContext(ctx, "go", "run", "./examples/coding-task/seed")
	cmd.Dir = b.root
	var errOut bytes.Buffer
	cmd.Stderr = &errOut
	out, err := cmd.Output()
	if err != nil {
		t.Fatalf("make the seed job: %v\n%s", err, errOut.String())
	}
	return string(out)
}

// runJob submits, follows, and returns the result of a job that must succeed.
func (b *bundle) runJob(t *testing.T, stdin, file string) *job.Result {
	t.Helper()
	out, errOut, code := b.submit(t, stdin, "run", "--output", "json", file)
	r := lastResult(t, out)
	if code != 0 || r.Outcome != job.Succeeded {
		t.Fatalf("%s: exit code %d, %s/%s: %s\n%+v\n%s", file, code, r.Outcome, r.Reason, r.Message, r.Steps, errOut)
	}
	t.Logf("%s: %s; queue %s, image %s, create %s, pull %s, steps %s, push %s", r.Name, r.Outcome, r.Phases.Queue, r.Phases.PullImage, r.Phases.Create, r.Phases.PullWorkspace, r.Phases.Steps, r.Phases.PushWorkspace)
	return r
}

// assertMetrics checks that the three jobs are counted.
func assertMetrics(t *testing.T, scrape string) {
	t.Helper()
	for _, want := range []string{
		`slipway_jobs_total\{outcome="succeeded",reason="none"\} 3`,
		`slipway_sync_files_total\{action="added",direction="push"\} \d+`,
		`slipway_sync_files_total\{action="restored",direction="pull"\} \d+`,
		`slipway_phase_duration_seconds_count\{.*phase="steps".*\} 3`,
		`slipway_leftovers_total 0`,
	} {
		if !regexp.MustCompile(`(?m)^` + want + `$`).MatchString(scrape) {
			t.Errorf("metrics lack %s; ours are:\n%s", want, ours(scrape))
		}
	}
}

func ours(scrape string) string {
	var lines []string
	for line := range strings.Lines(scrape) {
		if strings.HasPrefix(line, "slipway_") && !strings.Contains(line, "_bucket") {
			lines = append(lines, line)
		}
	}
	return strings.Join(lines, "")
}
