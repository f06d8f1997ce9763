package runner

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"slipway/container"
	"slipway/job"
	wsync "slipway/sync"
)

func TestJudge(t *testing.T) {
	t.Parallel()
	odd := errors.New("odd")
	tests := []judgeCase{
		{"denied", "", &container.Denied{Field: "user", Key: "root_steps"}, nil, job.ReasonPolicyDenied, false},
		{"unsupported", phaseCreate, container.ErrUnsupported, nil, job.ReasonPolicyDenied, false},
		{"box spec", phaseCreate, container.ErrSpec, nil, job.ReasonSpecInvalid, false},
		{"image not found", phasePullImage, container.ErrImageNotFound, nil, job.ReasonImageNotFound, false},
		{"image gone before create", phaseCreate, container.ErrImageNotFound, nil, job.ReasonImageNotFound, false},
		{"image auth", phasePullImage, container.ErrImageAuth, nil, job.ReasonImageAuth, false},
		{"image pull", phasePullImage, container.ErrImagePull, nil, job.ReasonImagePull, false},
		{"pull timeout", phasePullImage, &timeoutError{"pull", time.Second}, nil, job.ReasonImagePull, false},
		{"engine away in pull", phasePullImage, container.ErrEngineUnavailable, nil, job.ReasonEngineUnavailable, false},
		{"engine odd", phaseCreate, odd, nil, job.ReasonEngineUnavailable, false},
		{"box exists", phaseCreate, container.ErrExists, nil, job.ReasonEngineUnavailable, false},
		{"box lost in steps", phaseSteps, container.ErrBoxLost, nil, job.ReasonBoxLost, false},
		{"box stopped", phaseSteps, container.ErrStopped, nil, job.ReasonBoxLost, false},
		{"box lost in pull", phasePullWorkspace, container.ErrBoxLost, nil, job.ReasonBoxLost, false},
		{"store away in pull", phasePullWorkspace, wsync.ErrUnavailable, nil, job.ReasonWorkspacePull, false},
		{"store denied", phasePullWorkspace, wsync.ErrDenied, nil, job.ReasonWorkspacePull, false},
		{"no bucket", phasePushWorkspace, wsync.ErrNoBucket, nil, job.ReasonWorkspacePush, false},
		{"bad state", phasePullWorkspace, wsync.ErrState, nil, job.ReasonWorkspacePull, false},
		{"corrupt", phasePullWorkspace, wsync.ErrCorrupt, nil, job.ReasonWorkspacePull, false},
		{"workspace full", phasePullWorkspace, container.ErrNoSpace, nil, job.ReasonDisk, false},
		{"conflict", phasePushWorkspace, wsync.ErrConflict, nil, job.ReasonWorkspaceConflict, false},
		{"typed conflict", phasePushWorkspace, &wsync.Conflict{}, nil, job.ReasonWorkspaceConflict, false},
		{"mass delete", phasePushWorkspace, wsync.ErrMassDelete, nil, job.ReasonWorkspacePush, true},
		{"unknown in steps", phaseSteps, odd, nil, job.ReasonInternal, false},
		{"panic", "", &panicError{"x"}, nil, job.ReasonInternal, false},
		{"fault", phasePullWorkspace, &fault{job.ReasonSpecInvalid, true, odd}, nil, job.ReasonSpecInvalid, true},
		{"lease lost", "", job.ErrLeaseLost, nil, job.ReasonLeaseLost, false},
		// What was stopped from outside says nothing by its error.
		{"stopped: lease lost", phaseSteps, container.ErrBoxLost, job.ErrLeaseLost, job.ReasonLeaseLost, false},
		{"stopped: fenced", phasePullImage, odd, errSelfFenced, job.ReasonLeaseLost, false},
		{"stopped: soft stop", phaseCreate, context.Canceled, ErrSoftStop, job.ReasonDrained, false},
		{"stopped: killed", phaseCreate, context.Canceled, ErrKilled, job.ReasonDrained, false},
		{"stopped: canceled", phasePullImage, container.ErrImagePull, errCanceled, job.ReasonCanceledByUser, false},
		{"stopped: aborted", phaseSteps, container.ErrStopped, errAborted, job.ReasonCanceledByUser, false},
		{"stopped: job timeout", phaseSteps, odd, errJobTimeout, job.ReasonJobTimeout, false},
		{"stopped: ending time", phaseSteps, odd, errEndingTime, job.ReasonJobTimeout, false},
		{"stopped: unknown", phaseSteps, odd, odd, job.ReasonInternal, false},
	}
	for _, tt := range tests {
		t.Run(tt.name, tt.check)
	}
}

// judgeCase is how a phase ended, and what that counts as.
type judgeCase struct {
	name  string
	phase string
	err   error
	cause error
	want  job.Reason
	final bool
}

func (tt judgeCase) check(t *testing.T) {
	t.Parallel()
	got := judge(tt.phase, fmt.Errorf("do something: %w", tt.err), tt.cause)
	if got.reason != tt.want || got.final != tt.final {
		t.Errorf("got %s (final %t), want %s (final %t)", got.reason, got.final, tt.want, tt.final)
	}
	if got.message == "" {
		t.Error("got no message")
	}
}

func TestJudgeExit(t *testing.T) {
	t.Parallel()
	tests := []struct {
		name   string
		exit   container.Exit
		cause  error
		status job.StepStatus
		reason job.Reason
	}{
		{"zero", container.Exit{}, nil, job.StepSucceeded, ""},
		{"zero with a killed child", container.Exit{OOM: true}, nil, job.StepSucceeded, ""},
		{"one", container.Exit{Code: 1}, nil, job.StepFailed, job.ReasonExit},
		{"not found", container.Exit{Code: 127, Error: "no such file"}, nil, job.StepFailed, job.ReasonExit},
		{"killed by itself", container.Exit{Code: 137, Signal: "SIGKILL"}, nil, job.StepFailed, job.ReasonExit},
		{"out of memory", container.Exit{Code: 137, Signal: "SIGKILL", OOM: true}, nil, job.StepFailed, job.ReasonOOM},
		{"timeout", container.Exit{Code: 143, TimedOut: true}, nil, job.StepTimedOut, job.ReasonStepTimeout},
		{"timeout, polite zero", container.Exit{TimedOut: true}, nil, job.StepTimedOut, job.ReasonStepTimeout},
		{"job timeout", container.Exit{Code: 143, Canceled: true}, errJobTimeout, job.StepTimedOut, job.ReasonJobTimeout},
		{"cancel, polite zero", container.Exit{Canceled: true}, errCanceled, job.StepCanceled, job.ReasonCanceledByUser},
		{"abort", container.Exit{Code: 137, Canceled: true}, errAborted, job.StepCanceled, job.ReasonCanceledByUser},
		{"soft stop", container.Exit{Code: 143, Canceled: true}, ErrSoftStop, job.StepCanceled, job.ReasonDrained},
		{"lease lost", container.Exit{Code: 137, Canceled: true}, job.ErrLeaseLost, job.StepCanceled, job.ReasonLeaseLost},
		{"canceled by nobody", container.Exit{Canceled: true}, nil, job.StepErrored, job.ReasonInternal},
		{"ended before the cancel", container.Exit{}, errCanceled, job.StepSucceeded, ""},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			status, reason, _ := judgeExit(tt.exit, tt.cause)
			if status != tt.status || reason != tt.reason {
				t.Errorf("got %s/%s, want %s/%s", status, reason, tt.status, tt.reason)
			}
		})
	}
}

func TestDecide(t *testing.T) {
	t.Parallel()
	b := budgets{retry: job.Retry{Attempts: 3, Backoff: job.Duration(time.Second)}, infra: 2, backoff: 4 * time.Second}
	tests := []struct {
		name   string
		v      verdict
		counts job.Counts
		next   next
		class  job.Class
		delay  time.Duration
		left   int
		reason job.Reason
	}{
		{"success", verdict{outcome: job.Succeeded}, job.Counts{}, nextCommit, job.ClassNone, 0, 0, ""},
		{"first failure", verdict{reason: job.ReasonExit}, job.Counts{}, nextRequeue, job.ClassJob, time.Second, 2, job.ReasonExit},
		{"second failure", verdict{reason: job.ReasonOOM}, job.Counts{Job: 1}, nextRequeue, job.ClassJob, 2 * time.Second, 1, job.ReasonOOM},
		{"last failure", verdict{reason: job.ReasonExit}, job.Counts{Job: 2}, nextCommit, job.ClassJob, 0, 0, job.ReasonExit},
		{"infra leaves the job's budget alone", verdict{reason: job.ReasonExit}, job.Counts{Infra: 9}, nextRequeue, job.ClassJob, time.Second, 2, job.ReasonExit},
		{"timeout", verdict{reason: job.ReasonStepTimeout}, job.Counts{}, nextRequeue, job.ClassJob, time.Second, 2, job.ReasonStepTimeout},
		{"infra", verdict{reason: job.ReasonBoxLost}, job.Counts{Job: 2}, nextRequeue, job.ClassInfra, 2 * time.Second, 2, job.ReasonBoxLost},
		{"infra again", verdict{reason: job.ReasonWorkspacePush}, job.Counts{Infra: 1}, nextRequeue, job.ClassInfra, 4 * time.Second, 1, job.ReasonWorkspacePush},
		{"infra budget", verdict{reason: job.ReasonImagePull}, job.Counts{Infra: 2}, nextCommit, job.ClassInfra, 0, 0, job.ReasonInfraBudget},
		{"final", verdict{reason: job.ReasonWorkspacePull, final: true}, job.Counts{}, nextCommit, job.ClassInfra, 0, 0, job.ReasonWorkspacePull},
		{"spec", verdict{reason: job.ReasonSpecInvalid}, job.Counts{}, nextCommit, job.ClassNone, 0, 0, job.ReasonSpecInvalid},
		{"denied", verdict{reason: job.ReasonPolicyDenied}, job.Counts{}, nextCommit, job.ClassNone, 0, 0, job.ReasonPolicyDenied},
		{"canceled", verdict{reason: job.ReasonCanceledByUser}, job.Counts{}, nextCommit, job.ClassNone, 0, 0, job.ReasonCanceledByUser},
		{"drained", verdict{reason: job.ReasonDrained}, job.Counts{Infra: 9, Job: 9}, nextRelease, job.ClassShutdown, 0, 0, job.ReasonDrained},
		{"lease lost", verdict{reason: job.ReasonLeaseLost}, job.Counts{}, nextDrop, job.ClassNone, 0, 0, job.ReasonLeaseLost},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			tt.v.message = "the cause"
			d := decide(tt.v, tt.counts, b)
			if d.next != tt.next || d.class != tt.class || d.delay != tt.delay || d.left != tt.left || d.verdict.reason != tt.reason {
				t.Errorf("got next %d, class %s, delay %s, left %d, reason %s; want %d, %s, %s, %d, %s",
					d.next, d.class, d.delay, d.left, d.verdict.reason, tt.next, tt.class, tt.delay, tt.left, tt.reason)
			}
			if !strings.Contains(d.verdict.message, "the cause") {
				t.Errorf("message lost its cause: %q", d.verdict.message)
			}
		})
	}
}

func TestDecide_NoInfraBudget(t *testing.T) {
	t.Parallel()
	d := decide(verdict{outcome: job.Errored, reason: job.ReasonInternal, message: "m"}, job.Counts{}, budgets{infra: -1})
	if d.next != nextCommit || d.verdict.reason != job.ReasonInfraBudget {
		t.Errorf("got %d, %s; want a commit of infra_budget", d.next, d.verdict.reason)
	}
}

func TestBackoff(t *testing.T) {
	t.Parallel()
	for earlier, want := range []time.Duration{time.Minute, 2 * time.Minute, 4 * time.Minute, maxBackoff, maxBackoff} {
		if got := backoff(time.Minute, earlier); got != want {
			t.Errorf("after %d tries: got %s, want %s", earlier, got, want)
		}
	}
	if got := backoff(time.Second, 1<<30); got != maxBackoff {
		t.Errorf("after many tries: got %s, want %s", got, maxBackoff)
	}
	for _, jitter := range []float64{0, 0.5, 0.999} {
		if got := jittered(time.Minute, jitter); got < 30*time.Second || got >= time.Minute {
			t.Errorf("jitter %v: got %s, want from 30s to 1m", jitter, got)
		}
	}
}

func TestFirst(t *testing.T) {
	t.Parallel()
	ok, exit := verdict{outcome: job.Succeeded}, verdict{outcome: job.Failed, reason: job.ReasonExit}
	timeout, canceled := stopped(errJobTimeout), stopped(errCanceled)
	tests := []struct{ a, b, want verdict }{
		{ok, exit, exit}, {exit, timeout, exit}, {timeout, exit, timeout}, {exit, canceled, canceled}, {canceled, exit, canceled},
	}
	for _, tt := range tests {
		if got := first(tt.a, tt.b); got != tt.want {
			t.Errorf("first(%s, %s): got %s, want %s", tt.a.reason, tt.b.reason, got.reason, tt.want.reason)
		}
	}
}
