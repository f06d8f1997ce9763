package runner

import (
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"slipway/job"
	"slipway/sync/wsynctest"
)

func TestCancel(t *testing.T) {
	t.Parallel()
	scenario(t, func(b *bundle) {
		b.start()
		j := jobOf(run("touch f; sleep 1h"), run("say b"), always("say c; sleep 1m"))
		j.Workspace = &job.Workspace{Prefix: "ws", Push: job.WorkspacePushAlways}
		l := b.put(j)
		pass(10 * time.Second)
		l.cancels <- job.Cancel
		b.wait(l)
		r := b.want(l, job.Canceled, job.ReasonCanceledByUser)
		want := []job.StepStatus{job.StepCanceled, job.StepSkipped, job.StepSucceeded}
		if got := statuses(r); !slices.Equal(got, want) {
			t.Errorf("got steps %v, want %v", got, want)
		}
		if r.Workspace.FilesPushed != 1 || r.Workspace.Commit == "" {
			t.Errorf("got workspace %+v, want one file pushed", r.Workspace)
		}
		if got := r.FinishedAt.Sub(r.StartedAt); got != 70*time.Second {
			t.Errorf("took %s, want 10s and the always-step's minute", got)
		}
	})
}

func TestCancel_InSetup(t *testing.T) {
	t.Parallel()
	scenario(t, func(b *bundle) {
		b.boxes.prepare = hang
		b.start()
		l := b.put(jobOf(run("say a"), always("say b")))
		pass(time.Second)
		l.cancels <- job.Cancel
		b.wait(l)
		if r := b.want(l, job.Canceled, job.ReasonCanceledByUser); len(r.Steps) != 0 {
			t.Errorf("got steps %v, want none: no box was there", statuses(r))
		}
	})
}

func TestAbort(t *testing.T) {
	t.Parallel()
	scenario(t, func(b *bundle) {
		b.start()
		j := jobOf(job.Step{Run: "touch f; stubborn 1h", Grace: ptr(job.Duration(10 * time.Minute))}, always("say c"))
		j.Workspace = &job.Workspace{Prefix: "ws", Push: job.WorkspacePushAlways}
		l := b.put(j)
		pass(time.Second)
		l.cancels <- job.Cancel
		pass(time.Second)
		l.cancels <- job.Abort
		b.wait(l)
		r := b.want(l, job.Canceled, job.ReasonCanceledByUser)
		if got := r.FinishedAt.Sub(r.StartedAt); got != 2*time.Second {
			t.Errorf("took %s, want 2s: an abort waits for no grace", got)
		}
		if got := statuses(r); !slices.Equal(got, []job.StepStatus{job.StepCanceled, job.StepSkipped}) {
			t.Errorf("got steps %v, want canceled and skipped", got)
		}
		if keys := b.store.Keys(""); len(keys) != 0 || r.Workspace.NotSaved != "ended before the push" {
			t.Errorf("an aborted job wrote %v, and says of it %q", keys, r.Workspace.NotSaved)
		}
	})
}

// TestStop_BeforePush: the attempt is ended between its last step and its push. A
// success would claim that the files are saved.
func TestStop_BeforePush(t *testing.T) {
	t.Parallel()
	tests := []struct {
		name  string
		step  string
		stop  func(*bundle, *fakeLease)
		check func(*bundle, *fakeLease)
	}{
		{"abort", "touch f", (*bundle).abort, func(b *bundle, l *fakeLease) { b.want(l, job.Canceled, job.ReasonCanceledByUser) }},
		{"kill", "touch f", func(b *bundle, _ *fakeLease) { b.worker.Kill() }, wantReleased},
		{"kill after a failure", "exit 3", func(b *bundle, _ *fakeLease) { b.worker.Kill() }, wantReleased},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			scenario(t, func(b *bundle) {
				j := jobOf(run(tt.step))
				j.Workspace = &job.Workspace{Prefix: "ws", Push: job.WorkspacePushAlways}
				l := newLease(b, j)
				b.seen.phase = func(phase string) {
					if phase == phaseSteps {
						tt.stop(b, l)
						synctest.Wait()
					}
				}
				b.start()
				b.queue.leases <- l
				b.wait(l)
				tt.check(b, l)
				if keys := b.store.Keys(""); len(keys) != 0 {
					t.Errorf("got %v in the store, want nothing", keys)
				}
			})
		})
	}
}

func (b *bundle) abort(l *fakeLease) { l.cancels <- job.Abort }

func wantReleased(b *bundle, l *fakeLease) {
	b.t.Helper()
	l.mu.Lock()
	defer l.mu.Unlock()
	if !l.released {
		b.t.Errorf("got result %+v, failure %+v; want the job given back", l.result, l.failure)
	}
}

// TestCancel_InPush: what is nearly done is finished.
func TestCancel_InPush(t *testing.T) {
	t.Parallel()
	scenario(t, func(b *bundle) {
		b.store.Inject(wsynctest.Fault{Op: wsynctest.OpPut, Delay: time.Minute})
		b.start()
		j := jobOf(run("touch f"))
		j.Workspace = &job.Workspace{Prefix: "ws"}
		l := b.put(j)
		pass(time.Second)
		l.cancels <- job.Cancel
		b.wait(l)
		if r := b.want(l, job.Succeeded, ""); r.Workspace.FilesPushed != 1 {
			t.Errorf("got %+v, want one file pushed", r.Workspace)
		}
	})
}
