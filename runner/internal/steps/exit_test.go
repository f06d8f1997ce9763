package steps

import (
	"strings"
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
		{"out of processes", container.Exit{Code: 2, Pids: true}, nil, job.StepFailed, job.ReasonPids},
		{"out of processes at the start", container.Exit{Code: 126, Error: "start step process", Pids: true}, nil, job.StepFailed, job.ReasonPids},
		{"out of both", container.Exit{Code: 2, Pids: true, OOM: true}, nil, job.StepFailed, job.ReasonOOM},
		{"zero with a refused child", container.Exit{Pids: true}, nil, job.StepSucceeded, ""},
		{"root ended its supervisor", container.Exit{Code: 137, Signal: "SIGKILL", Unwatched: true}, nil, job.StepFailed, job.ReasonExit},
		{"timeout of a fork bomb", container.Exit{Code: 137, TimedOut: true, Pids: true}, nil, job.StepTimedOut, job.ReasonStepTimeout},
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

// What else happened to a command that was ended is told: it may be why the command took so long.
func TestToldBeside(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		exit  container.Exit
		cause error
		want  []string
	}{
		{container.Exit{TimedOut: true, OOM: true}, nil, []string{"timeout ran out", "killed for memory"}},
		{container.Exit{TimedOut: true, Pids: true}, nil, []string{"timeout ran out", "limit of processes"}},
		{container.Exit{Canceled: true, OOM: true}, verdict.ErrJobTimeout, []string{"the job's timeout", "killed for memory"}},
		{container.Exit{OOM: true}, nil, []string{"killed for memory", "succeeded"}},
		{container.Exit{Code: 1, Unwatched: true}, nil, []string{"the supervisor's own user", "supervisor"}},
	} {
		_, _, got := judgeExit(tt.exit, tt.cause)
		for _, want := range tt.want {
			if !strings.Contains(got, want) {
				t.Errorf("%+v: got %q, want it to say %q", tt.exit, got, want)
			}
		}
	}
}

// A shell that the image lacks is named with a way out. Other programs, and other errors, are told as they are.
func TestAdviseShell(t *testing.T) {
	t.Parallel()
	missing := container.Exit{Code: 127, Error: "/bin/sh: not found"}
	for _, tt := range []struct {
		name string
		step job.Step
		exit container.Exit
		want string
	}{
		{"script", job.Step{Run: "true"}, missing, "the image has no /bin/sh that works (/bin/sh: not found): use command"},
		{"own shell", job.Step{Run: "true", Shell: []string{"bash", "-c"}}, container.Exit{Code: 127, Error: "bash: not found in PATH"}, "bash: not found in PATH: name a shell that the image has"},
		{"command", job.Step{Command: []string{"/bin/sh"}}, missing, "/bin/sh: not found"},
		{"folder", job.Step{Run: "true"}, container.Exit{Code: 126, Error: "working folder /workspace: permission denied"}, "working folder /workspace: permission denied"},
		{"the script's own 127", job.Step{Run: "nope"}, container.Exit{Code: 127}, ""},
	} {
		_, _, message := judgeExit(tt.exit, nil)
		got := adviseShell(&tt.step, tt.exit, message)
		if !strings.HasPrefix(got, tt.want) || tt.want == "" && got != "" {
			t.Errorf("%s: got %q, want %q", tt.name, got, tt.want)
		}
	}
}
