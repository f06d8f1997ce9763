package e2e

import (
	"fmt"
	"strings"
	"testing"

	"slipway/job"
)

// TestPublicCases: inputs on which other systems, or an earlier version of this one, went wrong in public. Each case names
// the reports.
func TestPublicCases(t *testing.T) {
	b := setup(t, shellImage, goImage)
	b.startWorker(t, "cases")
	t.Run("output through a reader that is slower than the script", b.slowReader)
	t.Run("another job under a used id", b.sameID)
	t.Run("files in a folder without write permission", b.readOnlyFolder)
	t.Run("an input that can't be written", b.badInput)
	t.Run("the owner of the workspace", b.owner)
	t.Run("git and a build that asks it", b.git)
}

// run runs a job and returns its result and what a person saw.
func (b *bundle) run(t *testing.T, spec string) (*job.Result, string) {
	t.Helper()
	id := b.create(t, spec)
	r := b.result(t, id)
	out, errOut, _ := b.submit(t, "", "logs", string(id))
	return r, out + errOut
}

// slowReader: Bank-of-Z#242, automated-cluster-provisioner#71, aws-do-eks#76, pi-sandbox#76. All lines arrive, also those
// that the reader prints after the script has ended.
func (b *bundle) slowReader(t *testing.T) {
	r, out := b.run(t, `
image: busybox:1.36
timeout: 2m
steps:
  - run: |
      mkfifo /tmp/p
      while IFS= read -r l; do printf '%s %s\n' "$(date +%T)" "$l"; done < /tmp/p &
      exec > /tmp/p 2>&1
      for i in $(seq 1 400); do echo "test $i ok"; done
      echo "RESULT: 400 passed, 1 FAILED"
`)
	lines := strings.Count(out, " ok\n")
	t.Logf("%s, %d of 400 lines, RESULT shown: %t", r.Outcome, lines, strings.Contains(out, "RESULT: 400 passed"))
	if r.Outcome != job.Succeeded || lines != 400 || !strings.Contains(out, "RESULT: 400 passed, 1 FAILED") || r.Steps[0].Output.Cut {
		t.Errorf("got %s, cut %t, %d lines that end with %q; want succeeded and all 401", r.Outcome, r.Steps[0].Output.Cut, lines, out[max(0, len(out)-100):])
	}
}

// sameID: Kiln#112, hyperlocalise#2318. The same job again does no harm; another one is refused, and what differs is named.
func (b *bundle) sameID(t *testing.T) {
	id := string(job.NewID())
	spec := func(name string) string {
		return fmt.Sprintf(`{"name": "job-%[1]s", "image": "busybox:1.36", "steps": [{"run": "echo payload %[1]s"}]}`, name)
	}
	for _, step := range []struct {
		verb, name string
		code       int
	}{{"run", "a", 0}, {"create", "a", 0}, {"create", "b", 2}, {"run", "b", 2}} {
		out, errOut, code := b.submit(t, spec(step.name), step.verb, "--id", id, "-")
		t.Logf("%s of job-%s: exit %d %s", step.verb, step.name, code, strings.TrimSpace(errOut))
		if code != step.code {
			t.Errorf("%s of job-%s: got exit code %d, want %d\n%s%s", step.verb, step.name, code, step.code, out, errOut)
		}
		if step.code == 2 && (!strings.Contains(errOut, "name") || !strings.Contains(errOut, "steps") || strings.Contains(out, "payload")) {
			t.Errorf("%s of job-%s: got %q, %q; want the fields that differ, and no other job's output", step.verb, step.name, out, errOut)
		}
	}
}

// readOnlyFolder: restic#656, kopia#4742. What can't be done is said with its reason, and nothing is removed halfway.
func (b *bundle) readOnlyFolder(t *testing.T) {
	r, out := b.run(t, `
image: busybox:1.36
steps:
  - run: mkdir ro; echo a > ro/a; chmod 0555 ro
  - {delete: ro/a, continue_on_error: true}
  - {write: {path: ro/b, content: "b\n"}, continue_on_error: true}
  - run: test -e ro/a && echo "ro/a is still there"
  - delete: ro
`)
	for i, want := range []job.StepStatus{job.StepSucceeded, job.StepFailed, job.StepFailed, job.StepSucceeded, job.StepSucceeded} {
		s := r.Steps[i]
		t.Logf("step %d: %s %s", i+1, s.Status, s.Message)
		if s.Status != want || want == job.StepFailed && !strings.Contains(s.Message, "permission denied") {
			t.Errorf("step %d: got %s %q, want %s, a failure with permission denied", i+1, s.Status, s.Message, want)
		}
	}
	if r.Outcome != job.Succeeded || !strings.Contains(out, "ro/a is still there") {
		t.Errorf("got %s, %q; want succeeded, and ro/a there", r.Outcome, out)
	}
}

// badInput: the workspace was restored, so it is no fault of the pull, and the input that is wrong is named.
func (b *bundle) badInput(t *testing.T) {
	if r, _ := b.run(t, "image: busybox:1.36\nworkspace: {prefix: cases/blame}\nsteps: [{run: 'mkdir ro; echo b > ro/b; chmod 0555 ro'}]\n"); r.Outcome != job.Succeeded {
		t.Fatalf("first job: got %s (%s)", r.Outcome, r.Message)
	}
	r, _ := b.run(t, `
image: busybox:1.36
workspace: {prefix: cases/blame}
inputs:
  - {path: ro/b, content: "new b\n"}
  - {path: ro/c, content: "new c\n"}
steps: [{list: ro}]
`)
	t.Logf("%s (%s): %s", r.Outcome, r.Reason, r.Message)
	if r.Outcome != job.Errored || r.Reason != job.ReasonInput || !strings.Contains(r.Message, "inputs[0] (ro/b): permission denied") {
		t.Errorf("got %s/%s %q, want errored/input that names inputs[0]", r.Outcome, r.Reason, r.Message)
	}
}

// owner: clawker#361, image-builder#2100. git works only in a folder of its own user.
func (b *bundle) owner(t *testing.T) {
	for _, disk := range []string{"", "resources: {disk: 16MiB}\n"} {
		r, out := b.run(t, "image: busybox:1.36\n"+disk+"steps: [{run: 'stat -c %u:%g:%a . && id -u'}]\n")
		t.Logf("%s%s: %s", disk, r.Outcome, strings.TrimSpace(r.Steps[0].Output.Head))
		if got := r.Steps[0].Output.Head; r.Outcome != job.Succeeded || got != "1000:1000:777\n1000\n" {
			t.Errorf("%s: got %s, %q, want the workspace to belong to the user\n%s", disk, r.Outcome, got, out)
		}
	}
}

// git: the steps of the reports that owner names.
func (b *bundle) git(t *testing.T) {
	r, out := b.run(t, `
image: golang:1.26
resources: {memory: 2GiB, tmp: 1GiB}
env: {GOCACHE: /tmp/c, GOPATH: /tmp/go, GOPROXY: "off", GOTELEMETRY: "off", GOTOOLCHAIN: local}
inputs:
  - {path: go.mod, content: "module x\n\ngo 1.26\n"}
  - {path: main.go, content: "package main\n\nfunc main() {}\n"}
steps:
  - {name: init, run: git init -q . && git add . && git -c user.name=a -c user.email=a@b commit -qm one}
  - {name: status, run: test -z "$(git status --short)"}
  - {name: stamped build, run: go build -o /tmp/x . && go version -m /tmp/x | grep vcs.revision}
`)
	t.Logf("%s: %s", r.Outcome, strings.TrimSpace(r.Steps[len(r.Steps)-1].Output.Head))
	if r.Outcome != job.Succeeded {
		t.Errorf("got %s (%s)\n%s", r.Outcome, r.Message, out)
	}
}
