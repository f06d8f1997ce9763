package e2e

import (
	"context"
	"os/exec"
	"slices"
	"strings"
	"testing"
	"time"

	"slipway/job"
	"slipway/test/eventually"
)

const sleeper = `
name: sleeper
image: busybox:1.36
steps:
  - run: echo started; sleep %s; echo slept
`

func sleep(seconds string) string { return strings.Replace(sleeper, "%s", seconds, 1) }

// TestWorkerKilled: kill -9 of the worker in the middle of a step. The box dies by
// itself, a second worker runs the job again, and readers see one result.
func TestWorkerKilled(t *testing.T) {
	b := setup(t, shellImage)
	first := b.startWorker(t, "first")
	id := b.create(t, sleep("8"))
	b.waitOutput(t, id, "started")
	box := b.boxes(t)
	if len(box) != 1 {
		t.Fatalf("boxes while running: got %v, want one", box)
	}

	killed := time.Now()
	first.kill()
	eventually.True(t, 10*time.Second, "the dead worker's box is gone", func() bool { return !slices.Contains(b.boxes(t), box[0]) })
	t.Logf("after kill -9 of the worker: box gone after %d ms", time.Since(killed).Milliseconds())

	second := b.startWorker(t, "second")
	r := b.result(t, id)
	t.Logf("second worker: %s, attempt %d, fence %d, %d s after the kill", r.Outcome, r.Attempt, r.Fence, int(time.Since(killed).Seconds()))
	if r.Outcome != job.Succeeded || r.Worker != second.name || r.Attempt != 2 {
		t.Errorf("result: got %s by %s in attempt %d, want succeeded by %s in attempt 2", r.Outcome, r.Worker, r.Attempt, second.name)
	}
	b.assertOneResult(t, id)
}

// TestServerKilled: kill -9 of nats-server during a step, and a restart on the same data.
func TestServerKilled(t *testing.T) {
	b := setup(t, shellImage)
	b.startWorker(t, "steady")
	id := b.create(t, sleep("6"))
	b.waitOutput(t, id, "started")

	docker(t, "kill", "-s", "KILL", b.nats)
	docker(t, "start", b.nats)
	eventually.True(t, 30*time.Second, "the server answers again", func() bool {
		_, _, code := b.submit(t, "", "status", string(id))
		return code == 0
	})
	r := b.result(t, id)
	t.Logf("after kill -9 of nats-server: %s, attempt %d", r.Outcome, r.Attempt)
	if r.Outcome != job.Succeeded {
		t.Errorf("outcome: got %s (%s), want succeeded", r.Outcome, r.Message)
	}
	b.assertOneResult(t, id)
}

// TestStepTimeout: children that left their parent's session and ignore hangups die with the step.
func TestStepTimeout(t *testing.T) {
	b := setup(t, shellImage)
	b.startWorker(t, "patient")
	begun := time.Now()
	out, errOut, code := b.submit(t, `
image: busybox:1.36
steps:
  - command: [sh, -c, "setsid sleep 600 & nohup sleep 600 & echo started; sleep 600"]
    timeout: 1s
    grace: 500ms
  - name: survivors
    if: always
    run: which nohup >/dev/null && ! ps | grep '[s]leep 600' && echo none
`, "run", "--output", "json", "-")
	took := time.Since(begun)
	r := lastResult(t, out)
	t.Logf("step with setsid and nohup children: %s/%s, exit code %d, first step %s, whole run %d ms", r.Outcome, r.Reason, code, r.Steps[0].Duration, took.Milliseconds())
	if r.Outcome != job.TimedOut || r.Reason != job.ReasonStepTimeout || code != 124 {
		t.Errorf("got %s/%s with exit code %d, want timed_out/step_timeout with 124\n%s", r.Outcome, r.Reason, code, errOut)
	}
	if got := r.Steps[0].Output.Head; !strings.Contains(got, "started") {
		t.Errorf("output: got %q, want it to contain started", got)
	}
	if got := strings.TrimSpace(r.Steps[1].Output.Head); got != "none" {
		t.Errorf("processes of the step that survived: got %q, want none", got)
	}
	if took > 4*time.Second {
		t.Errorf("whole run: took %v, want less than 4 s", took)
	}
}

// TestCancel: the running step ends, what runs always still runs, and the exit code says canceled.
func TestCancel(t *testing.T) {
	b := setup(t, shellImage)
	b.startWorker(t, "obedient")
	id := b.create(t, `
image: busybox:1.36
steps:
  - run: echo started; sleep 600
  - {name: farewell, if: always, run: echo goodbye}
`)
	b.waitOutput(t, id, "started")
	if out, errOut, code := b.submit(t, "", "cancel", string(id)); code != 0 {
		t.Fatalf("cancel: exit code %d\n%s%s", code, out, errOut)
	}
	if _, _, code := b.submit(t, "", "result", "--wait", string(id)); code != 130 {
		t.Errorf("exit code of result: got %d, want 130", code)
	}
	r := b.result(t, id)
	if r.Outcome != job.Canceled || r.Reason != job.ReasonCanceledByUser || !strings.Contains(r.Steps[1].Output.Head, "goodbye") {
		t.Errorf("got %s/%s, last step %+v, want canceled/canceled_by_user with the always-step run", r.Outcome, r.Reason, r.Steps[1])
	}
	b.assertOneResult(t, id)
}

// TestDrain: a worker that is asked to stop lets its job finish, and takes no other.
func TestDrain(t *testing.T) {
	b := setup(t, shellImage)
	w := b.startWorker(t, "draining")
	id := b.create(t, sleep("4"))
	b.waitOutput(t, id, "started")
	w.stop()
	if code := w.cmd.ProcessState.ExitCode(); code != 0 {
		t.Errorf("exit code after a drain: got %d, want 0\n%s", code, w.log)
	}
	if r := b.result(t, id); r.Outcome != job.Succeeded || r.Attempt != 1 {
		t.Errorf("result: got %s in attempt %d, want succeeded in attempt 1", r.Outcome, r.Attempt)
	}
}

// assertOneResult asks the server itself how many results the job has.
func (b *bundle) assertOneResult(t *testing.T, id job.ID) {
	t.Helper()
	out, errOut, code := b.submit(t, "", "list", "--output", "json")
	if code != 0 || strings.Count(out, string(id)) != 1 {
		t.Errorf("list: code %d, job listed %d times, want once\n%s%s", code, strings.Count(out, string(id)), out, errOut)
	}
	if n := b.countResults(t, id); n != 1 {
		t.Errorf("result messages of job %s: got %d, want exactly 1", id, n)
	}
}

func docker(t *testing.T, args ...string) {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	if out, err := exec.CommandContext(ctx, "docker", args...).CombinedOutput(); err != nil {
		t.Fatalf("docker %v: %v\n%s", args, err, out)
	}
}
