package runner

import (
	"context"
	"slices"
	"strings"
	"testing"
	"time"

	"slipway/container"
	"slipway/job"
	"slipway/runner/internal/steps"
	wsync "slipway/sync"
	"slipway/sync/wsynctest"
)

func TestWorkspace_RoundTrip(t *testing.T) {
	t.Parallel()
	scenario(t, func(b *bundle) {
		ws := &job.Workspace{Prefix: "acme/parser"}
		r := b.want(b.do(&job.Job{Workspace: ws, Steps: []job.Step{run("touch a; touch d/b")}}), job.Succeeded, "")
		w := r.Workspace
		want := []job.Change{{Path: "a", Kind: "added"}, {Path: "d/b", Kind: "added"}}
		if w.Base != "" || w.Commit == "" || w.FilesPushed != 2 || w.BytesPushed != 4 || w.Prefix != ws.Prefix || !slices.Equal(files(w.Changes), want) {
			t.Errorf("first: got %+v", w)
		}
		if !slices.Contains(b.store.Keys(""), "p/workspaces/acme/parser/.sandbox-state") {
			t.Errorf("got keys %v, want the head below the prefix", b.store.Keys(""))
		}
		second := b.want(b.do(&job.Job{Workspace: ws, Steps: []job.Step{{Read: "d/b"}, {Delete: "a"}}}), job.Succeeded, "")
		if got := second.Steps[0].Output.Head; got != "d/b" {
			t.Errorf("second: read %q", got)
		}
		w2 := second.Workspace
		if w2.Base != w.Commit || w2.Commit == w.Commit || w2.FilesPulled != 2 || w2.FilesDeleted != 1 {
			t.Errorf("second: got %+v", w2)
		}
		third := b.want(b.do(&job.Job{Workspace: ws, Steps: []job.Step{run("say nothing changed")}}), job.Succeeded, "").Workspace
		if third.Commit != w2.Commit || len(third.Changes) != 0 {
			t.Errorf("third: got %+v, want the same commit", third)
		}
		if b.seen.get("push added") < 2 || b.seen.get("push deleted") != 1 || b.seen.get("pull restored") != 3 {
			t.Errorf("got %v", b.seen.count)
		}
	})
}

// files leaves out the folders.
func files(changes []job.Change) []job.Change {
	return slices.DeleteFunc(slices.Clone(changes), func(c job.Change) bool { return c.Path == "d" })
}

func TestWorkspace_PushPolicy(t *testing.T) {
	t.Parallel()
	timeout := job.Step{Run: "touch f; sleep 1h", Timeout: job.Duration(time.Second)}
	tests := []struct {
		push job.PushWorkspace
		step job.Step
		why  string // it is not saved
	}{
		{job.WorkspacePushAlways, run("touch f"), ""},
		{job.WorkspacePushAlways, run("touch f; exit 1"), ""},
		{job.WorkspacePushAlways, timeout, ""},
		{job.WorkspacePushAlways, run("touch f; lost"), "the job did not run to its end"},
		{job.WorkspacePushOnSuccess, run("touch f"), ""},
		{job.WorkspacePushOnSuccess, run("touch f; exit 1"), "push: on_success"},
		{job.WorkspacePushOnSuccess, timeout, "push: on_success"},
		{"", run("touch f"), ""},
		{"", run("touch f; exit 1"), "push: on_success"},
		{job.WorkspacePushNever, run("touch f"), "push: never"},
		{job.WorkspacePushNever, run("touch f; lost"), "push: never"},
	}
	for _, tt := range tests {
		t.Run(string(tt.push)+" "+tt.step.Run, func(t *testing.T) {
			t.Parallel()
			scenario(t, func(b *bundle) {
				b.cfg.InfraBudget = -1 // a lost box is a result
				l := b.do(&job.Job{Workspace: &job.Workspace{Prefix: "ws", Push: tt.push}, Steps: []job.Step{tt.step}})
				if got, want := len(b.store.Keys("p/workspaces/ws/")) > 0, tt.why == ""; got != want {
					t.Errorf("pushed: got %t, want %t", got, want)
				}
				if got := l.result.Workspace.NotSaved; got != tt.why {
					t.Errorf("not saved: got %q, want %q", got, tt.why)
				}
			})
		})
	}
}

func TestWorkspace_NeverPulled(t *testing.T) {
	t.Parallel()
	scenario(t, func(b *bundle) {
		b.do(&job.Job{Workspace: &job.Workspace{Prefix: "ws"}, Steps: []job.Step{run("touch old")}})
		ws := &job.Workspace{Prefix: "ws", Pull: job.WorkspacePullNever}
		r := b.want(b.do(&job.Job{Workspace: ws, Steps: []job.Step{{List: "."}, run("touch new")}}), job.Succeeded, "")
		if r.Steps[0].Output.Bytes != 0 || r.Workspace.FilesPulled != 0 || r.Workspace.Base == "" {
			t.Errorf("got %+v, want nothing restored over a base", r.Workspace)
		}
		want := []job.Change{{Path: "new", Kind: "added"}, {Path: "old", Kind: "deleted"}}
		if !slices.Equal(r.Workspace.Changes, want) {
			t.Errorf("got changes %v, want %v", r.Workspace.Changes, want)
		}
	})
}

// TestWorkspace_FromImage: the image's files are there until something is stored, and never together with what is.
func TestWorkspace_FromImage(t *testing.T) {
	t.Parallel()
	scenario(t, func(b *bundle) {
		b.boxes.image = []string{"app/main.go", "app/old.go"}
		made := func() bool {
			b.boxes.mu.Lock()
			defer b.boxes.mu.Unlock()
			return b.boxes.specs[len(b.boxes.specs)-1].FromImage
		}
		kept := &job.Workspace{Prefix: "ws", FromImage: true}
		r := b.want(b.do(&job.Job{Workspace: kept, Steps: []job.Step{{Delete: "app/old.go"}}}), job.Succeeded, "")
		if !made() || r.Workspace.FilesPulled != 0 || r.Workspace.FilesPushed != 1 || r.Workspace.Base != "" {
			t.Errorf("first: from the image: %t, %+v; want its one file saved", made(), r.Workspace)
		}
		r = b.want(b.do(&job.Job{Workspace: kept, Steps: []job.Step{{Read: "app/main.go"}, {List: "app"}}}), job.Succeeded, "")
		if made() || r.Workspace.FilesPulled != 1 || r.Steps[1].Output.Head != "main.go\n" {
			t.Errorf("second: from the image: %t, %+v, %q; want what is stored alone", made(), r.Workspace, r.Steps[1].Output.Head)
		}
		never := &job.Workspace{Prefix: "ws", FromImage: true, Pull: job.WorkspacePullNever}
		r = b.want(b.do(&job.Job{Workspace: never, Steps: []job.Step{{Read: "app/old.go"}}}), job.Succeeded, "")
		if !made() || r.Workspace.FilesPulled != 0 || r.Workspace.FilesPushed == 0 {
			t.Errorf("never pulled: from the image: %t, %+v; want the image's files to replace what is stored", made(), r.Workspace)
		}
		b.want(b.do(&job.Job{Workspace: &job.Workspace{Prefix: "ws"}, Steps: []job.Step{{Read: "app/old.go"}}}), job.Succeeded, "")
	})
}

// TestWorkspace_FromImageUnstored: no prefix, no store.
func TestWorkspace_FromImageUnstored(t *testing.T) {
	t.Parallel()
	scenario(t, func(b *bundle) {
		b.cfg.Store = nil
		b.boxes.image = []string{"f"}
		ws := &job.Workspace{FromImage: true}
		r := b.want(b.do(&job.Job{Workspace: ws, Steps: []job.Step{{Read: "f"}}}), job.Succeeded, "")
		if r.Workspace != nil {
			t.Errorf("got %+v, want nothing said of a workspace that is not kept", r.Workspace)
		}
		b.boxes.image = nil
		r = b.want(b.do(&job.Job{Workdir: "/testbed", Workspace: ws, Steps: []job.Step{run("say never")}}), job.Errored, job.ReasonSpecInvalid)
		if !strings.Contains(r.Message, "the image has no files at /testbed: set workdir") {
			t.Errorf("got message %q, want it to name the folder and what to do", r.Message)
		}
	})
}

// TestWorkspace_FromImageMeanwhile: what is stored, or removed, between the question and the box is not mixed with the
// image's files, nor does the job begin without any. Another attempt gets it right.
func TestWorkspace_FromImageMeanwhile(t *testing.T) {
	t.Parallel()
	ws := &job.Workspace{Prefix: "ws", FromImage: true}
	t.Run("stored", func(t *testing.T) {
		t.Parallel()
		scenario(t, func(b *bundle) {
			b.boxes.image = []string{"f"}
			b.boxes.start = func(ctx context.Context) error {
				b.boxes.start = nil
				b.want(b.do(&job.Job{Workspace: &job.Workspace{Prefix: "ws"}, Steps: []job.Step{run("touch g")}}), job.Succeeded, "")
				return nil
			}
			b.wantRetry(b.do(&job.Job{Workspace: ws, Steps: []job.Step{run("say never")}}), job.ClassInfra, job.ReasonWorkspaceConflict)
		})
	})
	t.Run("removed", func(t *testing.T) {
		t.Parallel()
		scenario(t, func(b *bundle) {
			b.want(b.do(&job.Job{Workspace: &job.Workspace{Prefix: "ws"}, Steps: []job.Step{run("touch g")}}), job.Succeeded, "")
			b.boxes.start = func(ctx context.Context) error { return b.store.Delete(ctx, "p/workspaces/ws/.sandbox-state") }
			b.wantRetry(b.do(&job.Job{Workspace: ws, Steps: []job.Step{run("say never")}}), job.ClassInfra, job.ReasonWorkspaceConflict)
		})
	})
	t.Run("no store", func(t *testing.T) {
		t.Parallel()
		scenario(t, func(b *bundle) {
			b.store.Inject(wsynctest.Fault{Op: wsynctest.OpGet, Times: 1000, Err: wsync.ErrUnavailable})
			b.wantRetry(b.do(&job.Job{Workspace: ws, Steps: []job.Step{run("say never")}}), job.ClassInfra, job.ReasonWorkspacePull)
		})
	})
}

func TestWorkspace_Conflict(t *testing.T) {
	t.Parallel()
	scenario(t, func(b *bundle) {
		ws := &job.Workspace{Prefix: "ws"}
		b.start()
		slow := b.put(&job.Job{Workspace: ws, Steps: []job.Step{run("touch a; sleep 1m")}})
		pass(time.Second)
		b.want(b.do(&job.Job{Workspace: ws, Steps: []job.Step{run("touch b")}}), job.Succeeded, "")
		b.wait(slow)
		b.wantRetry(slow, job.ClassInfra, job.ReasonWorkspaceConflict)
		if b.seen.get("conflict") != 1 {
			t.Errorf("got %d conflicts, want 1", b.seen.get("conflict"))
		}
	})
}

// TestWorkspace_Unrestorable: another attempt would find the same state. The result stands at once, and says what a person
// can do.
func TestWorkspace_Unrestorable(t *testing.T) {
	t.Parallel()
	const head = "p/workspaces/ws/.sandbox-state"
	for _, tt := range []struct{ name, state, want string }{
		{"no state", "garbage", "copy one over " + head},
		{"of a newer version", `{"version":"9.0"}`, "run the job on such a worker"},
	} {
		for _, pull := range []job.PullWorkspace{job.WorkspacePullAlways, job.WorkspacePullNever} {
			t.Run(tt.name+", pull "+string(pull), func(t *testing.T) {
				t.Parallel()
				scenario(t, func(b *bundle) {
					b.object(head, tt.state)
					ws := &job.Workspace{Prefix: "ws", Pull: pull}
					r := b.want(b.do(&job.Job{Workspace: ws, Steps: []job.Step{run("say never")}}), job.Errored, job.ReasonWorkspacePull)
					if !strings.Contains(r.Message, tt.want) || len(r.Steps) != 0 {
						t.Errorf("got message %q and steps %v, want %q and no step", r.Message, statuses(r), tt.want)
					}
				})
			})
		}
	}
	t.Run("a pack is missing", func(t *testing.T) {
		t.Parallel()
		scenario(t, func(b *bundle) {
			ws := &job.Workspace{Prefix: "ws"}
			b.want(b.do(&job.Job{Workspace: ws, Steps: []job.Step{run("touch a")}}), job.Succeeded, "")
			for _, key := range b.store.Keys("p/workspaces/ws/packs/") {
				if err := b.store.Delete(b.t.Context(), key); err != nil {
					t.Fatal(err)
				}
			}
			r := b.want(b.do(&job.Job{Workspace: ws, Steps: []job.Step{run("say never")}}), job.Errored, job.ReasonWorkspacePull)
			if !strings.Contains(r.Message, "p/workspaces/ws/versions/") {
				t.Errorf("got message %q, want it to say where the earlier states are", r.Message)
			}
		})
	})
}

func TestWorkspace_StoreFails(t *testing.T) {
	t.Parallel()
	t.Run("pull", func(t *testing.T) {
		t.Parallel()
		scenario(t, func(b *bundle) {
			b.store.Inject(wsynctest.Fault{Op: wsynctest.OpGet, Err: wsync.ErrNoBucket})
			l := b.do(&job.Job{Workspace: &job.Workspace{Prefix: "ws"}, Steps: []job.Step{run("say a")}})
			b.wantRetry(l, job.ClassInfra, job.ReasonWorkspacePull)
		})
	})
	t.Run("push", func(t *testing.T) {
		t.Parallel()
		scenario(t, func(b *bundle) {
			b.store.Inject(wsynctest.Fault{Op: wsynctest.OpPut, Err: wsync.ErrDenied, Times: 100})
			l := b.do(&job.Job{Workspace: &job.Workspace{Prefix: "ws"}, Steps: []job.Step{run("touch a")}})
			b.wantRetry(l, job.ClassInfra, job.ReasonWorkspacePush)
		})
	})
	t.Run("push after a failure", func(t *testing.T) {
		t.Parallel()
		scenario(t, func(b *bundle) {
			b.store.Inject(wsynctest.Fault{Op: wsynctest.OpPut, Err: wsync.ErrDenied, Times: 100})
			ws := &job.Workspace{Prefix: "ws", Push: job.WorkspacePushAlways}
			r := b.want(b.do(&job.Job{Workspace: ws, Steps: []job.Step{run("touch a; exit 1")}}), job.Failed, job.ReasonExit)
			if !strings.Contains(r.Message, "not saved") {
				t.Errorf("got message %q, want it to say that nothing was saved", r.Message)
			}
		})
	})
}

func TestAccept_NotAJob(t *testing.T) {
	t.Parallel()
	scenario(t, func(b *bundle) {
		b.start()
		for _, spec := range []string{"", "{", `{"version":"1","unknown":1}`, "\xff"} {
			l := newFakeLease(t, []byte(spec))
			b.queue.leases <- l
			b.wait(l)
			b.want(l, job.Errored, job.ReasonSpecInvalid)
		}
	})
}

func TestBoxSpec(t *testing.T) {
	t.Parallel()
	scenario(t, func(b *bundle) {
		b.cfg.Policy.Allow = container.Relaxations()
		b.cfg.Resources = container.Resources{Pids: 100}
		j := jobOf(run("say a"))
		j.User, j.Network, j.Env, j.Workdir = "0:0", job.NetworkOpen, map[string]string{"A": "b"}, "/src"
		j.Relax = []job.Relaxation{job.RelaxSeccompDefault, job.RelaxRootfsWritable}
		j.Resources = job.Resources{CPUs: 1.5, Memory: 1 << 30, Tmp: 8 << 20}
		l := b.do(j)
		r := b.want(l, job.Succeeded, "")
		if want := []string{"network_open", "root_steps", "rootfs_writable", "seccomp_default"}; !slices.Equal(r.Relaxed, want) {
			t.Errorf("relaxed: got %v, want %v", r.Relaxed, want)
		}
		s := b.boxes.specs[0]
		if s.Name != "slipway-"+strings.ToLower(string(l.delivery.ID))+"-1" || s.Image != "sha256:abc" || s.Workdir != "/src" ||
			s.Env["A"] != "b" || s.Network != container.NetworkOpen || s.User != (container.User{}) {
			t.Errorf("got spec %+v", s)
		}
		if got := s.Resources; got.CPUs != 1.5 || got.Memory != 1<<30 || got.Tmp != 8<<20 || got.Pids != 100 || got.Files != container.DefaultResources().Files {
			t.Errorf("got resources %+v", got)
		}
		if s.DeadMan != 20*time.Second || s.Lifetime < time.Hour+steps.EndingTime {
			t.Errorf("got dead man %s, lifetime %s", s.DeadMan, s.Lifetime)
		}
		for _, k := range []string{container.LabelProduct, container.LabelWorker, container.LabelJob, container.LabelAttempt, container.LabelFence, container.LabelExpires} {
			if s.Labels[k] == "" {
				t.Errorf("label %s is missing", k)
			}
		}
	})
}

// TestWorkspace_LostCommit: an attempt that saved its files and died before its
// result was decided must not have its successor work on top of its work.
func TestWorkspace_LostCommit(t *testing.T) {
	t.Parallel()
	for push, pulled := range map[job.PushWorkspace]int{job.WorkspacePushOnSuccess: 0, job.WorkspacePushAlways: 1} {
		t.Run(string(push), func(t *testing.T) {
			t.Parallel()
			scenario(t, func(b *bundle) {
				j := jobOf(run("touch f"))
				j.Workspace = &job.Workspace{Prefix: "ws", Push: push}
				dies := newLease(b, j)
				dies.commit = func(context.Context, *job.Result) (*job.Result, error) { return nil, job.ErrUnavailable }
				next := newLease(b, j)
				next.delivery.ID, next.delivery.Attempt, next.delivery.Fence = dies.delivery.ID, 2, 8
				b.start()
				b.queue.leases <- dies
				pass(time.Second)
				b.queue.leases <- next
				b.wait(next)
				if r := b.want(next, job.Succeeded, ""); r.Workspace.FilesPulled != pulled {
					t.Errorf("pulled %d files, want %d", r.Workspace.FilesPulled, pulled)
				}
			})
		})
	}
}

// TestWorkspace_FirstClaim: without an earlier attempt the store is not asked what that may have left.
func TestWorkspace_FirstClaim(t *testing.T) {
	t.Parallel()
	gets := map[uint64]int{}
	for _, fence := range []uint64{1, 2} {
		scenario(t, func(b *bundle) {
			l := newLease(b, &job.Job{Workspace: &job.Workspace{Prefix: "ws"}, Steps: []job.Step{run("say a")}})
			l.delivery.Fence = fence
			b.start()
			b.queue.leases <- l
			b.wait(l)
			b.want(l, job.Succeeded, "")
			calls, _, _ := b.store.Counts()
			gets[fence] = calls[wsynctest.OpGet]
		})
	}
	if gets[1] >= gets[2] {
		t.Errorf("got %d reads at the first claim and %d at the second, want less at the first", gets[1], gets[2])
	}
}

// TestWorkspace_NeitherWay: a workspace that is neither restored nor saved is not asked for.
func TestWorkspace_NeitherWay(t *testing.T) {
	t.Parallel()
	scenario(t, func(b *bundle) {
		ws := &job.Workspace{Prefix: "ws", Pull: job.WorkspacePullNever, Push: job.WorkspacePushNever}
		b.want(b.do(&job.Job{Workspace: ws, Steps: []job.Step{run("touch f")}}), job.Succeeded, "")
		if calls, _, _ := b.store.Counts(); len(calls) != 0 {
			t.Errorf("the store was asked: %v", calls)
		}
	})
}

// TestWorkspace_Replaced: a job that saves without having restored means to replace the files, even by nothing.
func TestWorkspace_Replaced(t *testing.T) {
	t.Parallel()
	scenario(t, func(b *bundle) {
		b.do(&job.Job{Workspace: &job.Workspace{Prefix: "ws"}, Steps: []job.Step{run("touch old")}})
		for pull, reason := range map[job.PullWorkspace]job.Reason{job.WorkspacePullAlways: job.ReasonWorkspacePush, job.WorkspacePullNever: ""} {
			r := b.want(b.do(&job.Job{Workspace: &job.Workspace{Prefix: "ws", Pull: pull}, Steps: []job.Step{{Delete: "old"}}}), reason.Outcome(), reason)
			if hint := "workspace.pull: never"; strings.Contains(r.Message, hint) != (reason != "") {
				t.Errorf("pull %s: got message %q, want the hint %q: %t", pull, r.Message, hint, reason != "")
			}
			if reason == "" {
				break
			}
		}
	})
}

// TestWorkspace_BytesAreCountedOnce: a push knows only the sum of its bytes.
func TestWorkspace_BytesAreCountedOnce(t *testing.T) {
	t.Parallel()
	scenario(t, func(b *bundle) {
		ws := &job.Workspace{Prefix: "ws"}
		first := b.want(b.do(&job.Job{Workspace: ws, Steps: []job.Step{run("touch a")}}), job.Succeeded, "").Workspace
		write := job.Step{Write: &job.WriteFile{Path: "a", Content: ptr("changed")}}
		second := b.want(b.do(&job.Job{Workspace: ws, Steps: []job.Step{write, run("touch bb")}}), job.Succeeded, "").Workspace
		if want := first.BytesPushed + second.BytesPulled + second.BytesPushed; b.seen.moved != want || second.BytesPushed == 0 {
			t.Errorf("counted %d bytes, want %d", b.seen.moved, want)
		}
		if b.seen.get("push modified") != 1 || b.seen.get("push added") != 2 {
			t.Errorf("got %v, want one file modified and two added", b.seen.count)
		}
	})
}
