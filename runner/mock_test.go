package runner

import (
	"slices"
	"strings"
	"testing"
	"time"

	"slipway/container"
	"slipway/container/mock"
	"slipway/job"
)

// withMock gives the worker the mock's boxes, which fail the test if they are
// misused or left alive, in place of the fake ones, which can also panic.
func withMock(b *bundle) *mock.Provider {
	p := mock.New(b.t)
	b.cfg.Provider = p
	return p
}

func TestMock_Commands(t *testing.T) {
	t.Parallel()
	tests := []struct {
		name    string
		reply   mock.Reply
		step    job.Step
		outcome job.Outcome
		reason  job.Reason
		code    int
		signal  string
	}{
		{"works", mock.Reply{Stdout: "ok\n"}, job.Step{}, job.Succeeded, "", 0, ""},
		{"fails", mock.Reply{Code: 2}, job.Step{}, job.Failed, job.ReasonExit, 2, ""},
		{"crashes", mock.Reply{Code: 139, Signal: "SIGSEGV"}, job.Step{}, job.Failed, job.ReasonExit, 139, "SIGSEGV"},
		{"not found", mock.Reply{Code: 127, StartError: "no such program"}, job.Step{}, job.Failed, job.ReasonExit, 127, ""},
		{"out of memory", mock.Reply{Code: 137, Signal: "SIGKILL", OOM: true}, job.Step{}, job.Failed, job.ReasonOOM, 137, "SIGKILL"},
		{"timeout", mock.Reply{Hang: true}, job.Step{Timeout: job.Duration(time.Second)}, job.TimedOut, job.ReasonStepTimeout, 143, "SIGTERM"},
		{"stubborn", mock.Reply{Hang: true, IgnoreTERM: true}, job.Step{Timeout: job.Duration(time.Second)}, job.TimedOut, job.ReasonStepTimeout, 137, "SIGKILL"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			scenario(t, func(b *bundle) {
				withMock(b).On("cmd", tt.reply)
				tt.step.Command = []string{"cmd"}
				r := b.want(b.do(jobOf(tt.step)), tt.outcome, tt.reason)
				s := r.Steps[0]
				if s.ExitCode == nil || *s.ExitCode != tt.code || s.Signal != tt.signal {
					t.Errorf("got exit code %v, signal %q; want %d, %q", s.ExitCode, s.Signal, tt.code, tt.signal)
				}
			})
		})
	}
}

// What a command left running is in the result and in the events, however the command ended.
func TestMock_Leftovers(t *testing.T) {
	t.Parallel()
	for _, reply := range []mock.Reply{{}, {Leftovers: 2}, {Stdout: "x", Code: 3, Leftovers: 1, Cut: true}} {
		scenario(t, func(b *bundle) {
			withMock(b).On("cmd", reply)
			l := b.do(jobOf(job.Step{Command: []string{"cmd"}}))
			s := l.result.Steps[0]
			if s.Leftovers != reply.Leftovers || s.Output.Cut != reply.Cut || *s.ExitCode != reply.Code {
				t.Errorf("got %+v, want %d leftovers, cut %t, code %d", s, reply.Leftovers, reply.Cut, reply.Code)
			}
			for _, e := range l.events {
				if e.Kind == job.EventStepEnd && (e.Leftovers != reply.Leftovers || e.Cut != reply.Cut) {
					t.Errorf("got the event %+v, want %d leftovers, cut %t", e, reply.Leftovers, reply.Cut)
				}
			}
		})
	}
}

func TestMock_Faults(t *testing.T) {
	t.Parallel()
	tests := []struct {
		name   string
		fault  mock.Fault
		reason job.Reason
	}{
		{"engine away at create", mock.Fault{At: mock.OnCreate, Err: container.ErrEngineUnavailable}, job.ReasonEngineUnavailable},
		{"made all the same", mock.Fault{At: mock.OnCreate, Err: container.ErrEngineUnavailable, Happened: true}, job.ReasonEngineUnavailable},
		{"create hangs", mock.Fault{At: mock.OnCreate, Hang: true}, job.ReasonEngineUnavailable},
		{"start fails", mock.Fault{At: mock.OnStart, Err: container.ErrBoxLost}, job.ReasonBoxLost},
		{"started all the same", mock.Fault{At: mock.OnStart, Err: container.ErrEngineUnavailable, Happened: true}, job.ReasonEngineUnavailable},
		{"lost in a command", mock.Fault{At: mock.OnExec, LoseBox: true}, job.ReasonBoxLost},
		{"engine away in a command", mock.Fault{At: mock.OnExec, Err: container.ErrEngineUnavailable}, job.ReasonEngineUnavailable},
		{"lost in a file", mock.Fault{At: mock.OnFiles, LoseBox: true}, job.ReasonBoxLost},
		{"lost while the inputs are written", mock.Fault{At: mock.OnFiles, Err: container.ErrBoxLost, Times: 1}, job.ReasonBoxLost},
		{"removal fails at first", mock.Fault{At: mock.OnRemove, Err: container.ErrEngineUnavailable, Times: 3}, ""},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			scenario(t, func(b *bundle) {
				p := withMock(b)
				p.Fail(tt.fault)
				j := jobOf(run("true"), job.Step{Write: &job.WriteFile{Path: "f", Content: ptr("x")}})
				j.Inputs = []job.Input{{Path: "in", Content: ptr("x")}}
				p.On("true", mock.Reply{})
				l := b.do(j)
				if tt.reason == "" {
					b.want(l, job.Succeeded, "")
				} else {
					b.wantRetry(l, job.ClassInfra, tt.reason)
				}
				pass(time.Minute)
				if left := p.Alive(); len(left) != 0 {
					t.Errorf("boxes left: %v", left)
				}
			})
		})
	}
}

func TestMock_FileActions(t *testing.T) {
	t.Parallel()
	write := job.Step{Write: &job.WriteFile{Path: "f", Content: ptr("x")}}
	tests := []struct {
		name    string
		fault   mock.Fault
		step    job.Step
		outcome job.Outcome
		reason  job.Reason
	}{
		{"no space", mock.Fault{At: mock.OnFiles, Err: container.ErrNoSpace}, write, job.Failed, job.ReasonDisk},
		{"no right", mock.Fault{At: mock.OnFiles, Err: container.ErrPermission}, job.Step{Delete: "f"}, job.Failed, job.ReasonExit},
		{"through a link", mock.Fault{At: mock.OnFiles, Err: container.ErrPath}, job.Step{List: "f"}, job.Failed, job.ReasonExit},
		{"step timeout", mock.Fault{At: mock.OnFiles, Hang: true}, job.Step{Read: "f", Timeout: job.Duration(time.Second)}, job.TimedOut, job.ReasonStepTimeout},
		{"job timeout", mock.Fault{At: mock.OnFiles, Hang: true}, job.Step{Read: "f"}, job.TimedOut, job.ReasonJobTimeout},
		{"not supported", mock.Fault{At: mock.OnFiles, Err: container.ErrUnsupported}, job.Step{Read: "f"}, job.Errored, job.ReasonPolicyDenied},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			scenario(t, func(b *bundle) {
				withMock(b).Fail(tt.fault)
				r := b.want(b.do(jobOf(tt.step, run("true"))), tt.outcome, tt.reason)
				if r.Message == "" || r.Steps[1].Status != job.StepSkipped {
					t.Errorf("got message %q, second step %s", r.Message, r.Steps[1].Status)
				}
			})
		})
	}
}

func TestMock_InputsThatDontFit(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		err     error
		outcome job.Outcome
		reason  job.Reason
	}{
		{container.ErrNoSpace, job.Failed, job.ReasonDisk},
		{container.ErrPath, job.Errored, job.ReasonInput},
	} {
		scenario(t, func(b *bundle) {
			withMock(b).Fail(mock.Fault{At: mock.OnFiles, Err: tt.err})
			j := jobOf(run("true"))
			j.Inputs = []job.Input{{Path: "ok/f", Content: ptr("x")}}
			r := b.want(b.do(j), tt.outcome, tt.reason)
			if !strings.Contains(r.Message, "inputs[0] (ok/f)") {
				t.Errorf("got message %q, want it to name the input", r.Message)
			}
		})
	}
}

// TestMock_Workspace: the sync engine works on the mock's file API through boxTree.
func TestMock_Workspace(t *testing.T) {
	t.Parallel()
	scenario(t, func(b *bundle) {
		p := withMock(b)
		p.On("make", mock.Reply{Files: map[string]string{"out/a": "1", "out/b": strings.Repeat("x", 300<<10), "c": "3"}})
		p.On("change", mock.Reply{Files: map[string]string{"c": "4"}})
		ws := &job.Workspace{Prefix: "ws"}
		b.want(b.do(&job.Job{Workspace: ws, Steps: []job.Step{run("make")}}), job.Succeeded, "")
		r := b.want(b.do(&job.Job{Workspace: ws, Steps: []job.Step{{Read: "out/a"}, run("change"), {Delete: "out/a"}}}), job.Succeeded, "")
		want := []job.Change{{Path: "c", Kind: "modified"}, {Path: "out/a", Kind: "deleted"}}
		if got := r.Workspace.Changes; !slices.Equal(got, want) || r.Steps[0].Output.Head != "1" || r.Workspace.FilesPulled < 3 {
			t.Errorf("got changes %v, pulled %d, read %q", got, r.Workspace.FilesPulled, r.Steps[0].Output.Head)
		}
	})
}
