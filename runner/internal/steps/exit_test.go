package steps

import (
	"testing"

	"slipway/container"
	"slipway/job"
	"slipway/runner/internal/verdict"
)

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
		{"job timeout", container.Exit{Code: 143, Canceled: true}, verdict.ErrJobTimeout, job.StepTimedOut, job.ReasonJobTimeout},
		{"ending time", container.Exit{Code: 143, Canceled: true}, endingOver{}, job.StepTimedOut, job.ReasonJobTimeout},
		{"cancel, polite zero", container.Exit{Canceled: true}, verdict.ErrCanceled, job.StepCanceled, job.ReasonCanceledByUser},
		{"abort", container.Exit{Code: 137, Canceled: true}, verdict.ErrAborted, job.StepCanceled, job.ReasonCanceledByUser},
		{"soft stop", container.Exit{Code: 143, Canceled: true}, verdict.ErrSoftStop, job.StepCanceled, job.ReasonDrained},
		{"lease lost", container.Exit{Code: 137, Canceled: true}, job.ErrLeaseLost, job.StepCanceled, job.ReasonLeaseLost},
		{"canceled by nobody", container.Exit{Canceled: true}, nil, job.StepErrored, job.ReasonInternal},
		{"ended before the cancel", container.Exit{}, verdict.ErrCanceled, job.StepSucceeded, ""},
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
