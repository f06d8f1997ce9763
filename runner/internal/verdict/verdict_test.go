package verdict

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"time"

	"slipway/container"
	"slipway/job"
	"slipway/runner/internal/panics"
	wsync "slipway/sync"
)

func TestJudge(t *testing.T) {
	t.Parallel()
	odd := errors.New("odd")
	tests := []judgeCase{
		{"denied", job.ReasonInternal, &container.Denied{Field: "user", Key: "root_steps"}, nil, job.ReasonPolicyDenied, false},
		{"unsupported", job.ReasonEngineUnavailable, container.ErrUnsupported, nil, job.ReasonPolicyDenied, false},
		{"box spec", job.ReasonEngineUnavailable, container.ErrSpec, nil, job.ReasonSpecInvalid, false},
		{"image not found", job.ReasonImagePull, container.ErrImageNotFound, nil, job.ReasonImageNotFound, false},
		{"image gone before create", job.ReasonEngineUnavailable, container.ErrImageNotFound, nil, job.ReasonImageNotFound, false},
		{"image auth", job.ReasonImagePull, container.ErrImageAuth, nil, job.ReasonImageAuth, false},
		{"image pull", job.ReasonImagePull, container.ErrImagePull, nil, job.ReasonImagePull, false},
		{"pull timeout", job.ReasonImagePull, &Timeout{"pull", time.Second}, nil, job.ReasonImagePull, false},
		{"engine away in pull", job.ReasonImagePull, container.ErrEngineUnavailable, nil, job.ReasonEngineUnavailable, false},
		{"engine odd", job.ReasonEngineUnavailable, odd, nil, job.ReasonEngineUnavailable, false},
		{"box exists", job.ReasonEngineUnavailable, container.ErrExists, nil, job.ReasonEngineUnavailable, false},
		{"box lost in steps", job.ReasonInternal, container.ErrBoxLost, nil, job.ReasonBoxLost, false},
		{"box out of memory", job.ReasonWorkspacePush, errors.Join(container.ErrBoxLost, container.ErrBoxOOM), nil, job.ReasonOOM, false},
		{"box ended by root", job.ReasonInternal, errors.Join(container.ErrBoxLost, container.ErrBoxEnded), nil, job.ReasonExit, false},
		{"command stuck", job.ReasonInternal, errors.Join(container.ErrBoxLost, container.ErrStuck), nil, job.ReasonStepTimeout, false},
		{"stopped: canceled, and stuck", job.ReasonInternal, container.ErrStuck, ErrCanceled, job.ReasonCanceledByUser, false},
		{"box stopped", job.ReasonInternal, container.ErrStopped, nil, job.ReasonBoxLost, false},
		{"box lost in pull", job.ReasonWorkspacePull, container.ErrBoxLost, nil, job.ReasonBoxLost, false},
		{"store away in pull", job.ReasonWorkspacePull, wsync.ErrUnavailable, nil, job.ReasonWorkspacePull, false},
		{"store denied", job.ReasonWorkspacePull, wsync.ErrDenied, nil, job.ReasonWorkspacePull, false},
		{"no bucket", job.ReasonWorkspacePush, wsync.ErrNoBucket, nil, job.ReasonWorkspacePush, false},
		{"bad state", job.ReasonWorkspacePull, wsync.ErrState, nil, job.ReasonWorkspacePull, false},
		{"corrupt", job.ReasonWorkspacePull, wsync.ErrCorrupt, nil, job.ReasonWorkspacePull, false},
		{"workspace full", job.ReasonWorkspacePull, container.ErrNoSpace, nil, job.ReasonDisk, false},
		{"conflict", job.ReasonWorkspacePush, wsync.ErrConflict, nil, job.ReasonWorkspaceConflict, false},
		{"typed conflict", job.ReasonWorkspacePush, &wsync.Conflict{}, nil, job.ReasonWorkspaceConflict, false},
		{"mass delete", job.ReasonWorkspacePush, wsync.ErrMassDelete, nil, job.ReasonWorkspacePush, true},
		{"unknown in steps", job.ReasonInternal, odd, nil, job.ReasonInternal, false},
		{"panic", job.ReasonInternal, &panics.Error{Value: "x"}, nil, job.ReasonInternal, false},
		{"fault", job.ReasonWorkspacePull, &Fault{job.ReasonSpecInvalid, true, odd}, nil, job.ReasonSpecInvalid, true},
		{"lease lost", job.ReasonInternal, job.ErrLeaseLost, nil, job.ReasonLeaseLost, false},
		// What was stopped from outside says nothing by its error.
		{"stopped: lease lost", job.ReasonInternal, container.ErrBoxLost, job.ErrLeaseLost, job.ReasonLeaseLost, false},
		{"stopped: fenced", job.ReasonImagePull, odd, ErrSelfFenced, job.ReasonLeaseLost, false},
		{"stopped: soft stop", job.ReasonEngineUnavailable, context.Canceled, ErrSoftStop, job.ReasonDrained, false},
		{"stopped: killed", job.ReasonEngineUnavailable, context.Canceled, ErrKilled, job.ReasonDrained, false},
		{"stopped: canceled", job.ReasonImagePull, container.ErrImagePull, ErrCanceled, job.ReasonCanceledByUser, false},
		{"stopped: aborted", job.ReasonInternal, container.ErrStopped, ErrAborted, job.ReasonCanceledByUser, false},
		{"stopped: job timeout", job.ReasonInternal, odd, ErrJobTimeout, job.ReasonJobTimeout, false},
		{"stopped: unknown", job.ReasonInternal, odd, odd, job.ReasonInternal, false},
	}
	for _, tt := range tests {
		t.Run(tt.name, tt.check)
	}
}

// judgeCase is how a phase ended, and what that counts as.
type judgeCase struct {
	name      string
	otherwise job.Reason
	err       error
	cause     error
	want      job.Reason
	final     bool
}

func (tt judgeCase) check(t *testing.T) {
	t.Parallel()
	got := Judge(fmt.Errorf("do something: %w", tt.err), tt.cause, tt.otherwise)
	if got.Reason != tt.want || got.Final != tt.final {
		t.Errorf("got %s (final %t), want %s (final %t)", got.Reason, got.Final, tt.want, tt.final)
	}
	if got.Message == "" {
		t.Error("got no message")
	}
}

func TestEarlier(t *testing.T) {
	t.Parallel()
	ok, exit := Verdict{Outcome: job.Succeeded}, Verdict{Outcome: job.Failed, Reason: job.ReasonExit}
	timeout, canceled := Stopped(ErrJobTimeout), Stopped(ErrCanceled)
	tests := []struct{ a, b, want Verdict }{
		{ok, exit, exit}, {exit, timeout, exit}, {timeout, exit, timeout}, {exit, canceled, canceled}, {canceled, exit, canceled},
	}
	for _, tt := range tests {
		if got := Earlier(tt.a, tt.b); got != tt.want {
			t.Errorf("Earlier(%s, %s): got %s, want %s", tt.a.Reason, tt.b.Reason, got.Reason, tt.want.Reason)
		}
	}
}
