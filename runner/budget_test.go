package runner

import (
	"strings"
	"testing"
	"time"

	"slipway/job"
	"slipway/runner/internal/verdict"
)

func TestDecide(t *testing.T) {
	t.Parallel()
	b := budgets{retry: job.Retry{Attempts: 3, Backoff: job.Duration(time.Second)}, infra: 2, backoff: 4 * time.Second}
	tests := []struct {
		name   string
		v      verdict.Verdict
		counts job.Counts
		next   next
		class  job.Class
		delay  time.Duration
		left   int
		reason job.Reason
	}{
		{"success", verdict.Verdict{Outcome: job.Succeeded}, job.Counts{}, nextCommit, job.ClassNone, 0, 0, ""},
		{"first failure", verdict.Verdict{Reason: job.ReasonExit}, job.Counts{}, nextRequeue, job.ClassJob, time.Second, 2, job.ReasonExit},
		{"second failure", verdict.Verdict{Reason: job.ReasonOOM}, job.Counts{Job: 1}, nextRequeue, job.ClassJob, 2 * time.Second, 1, job.ReasonOOM},
		{"last failure", verdict.Verdict{Reason: job.ReasonExit}, job.Counts{Job: 2}, nextCommit, job.ClassJob, 0, 0, job.ReasonExit},
		{"infra leaves the job's budget alone", verdict.Verdict{Reason: job.ReasonExit}, job.Counts{Infra: 9}, nextRequeue, job.ClassJob, time.Second, 2, job.ReasonExit},
		{"timeout", verdict.Verdict{Reason: job.ReasonStepTimeout}, job.Counts{}, nextRequeue, job.ClassJob, time.Second, 2, job.ReasonStepTimeout},
		{"infra", verdict.Verdict{Reason: job.ReasonBoxLost}, job.Counts{Job: 2}, nextRequeue, job.ClassInfra, 2 * time.Second, 2, job.ReasonBoxLost},
		{"infra again", verdict.Verdict{Reason: job.ReasonWorkspacePush}, job.Counts{Infra: 1}, nextRequeue, job.ClassInfra, 4 * time.Second, 1, job.ReasonWorkspacePush},
		{"infra budget", verdict.Verdict{Reason: job.ReasonImagePull}, job.Counts{Infra: 2}, nextCommit, job.ClassInfra, 0, 0, job.ReasonInfraBudget},
		{"final", verdict.Verdict{Reason: job.ReasonWorkspacePull, Final: true}, job.Counts{}, nextCommit, job.ClassInfra, 0, 0, job.ReasonWorkspacePull},
		{"spec", verdict.Verdict{Reason: job.ReasonSpecInvalid}, job.Counts{}, nextCommit, job.ClassNone, 0, 0, job.ReasonSpecInvalid},
		{"denied", verdict.Verdict{Reason: job.ReasonPolicyDenied}, job.Counts{}, nextCommit, job.ClassNone, 0, 0, job.ReasonPolicyDenied},
		{"canceled", verdict.Verdict{Reason: job.ReasonCanceledByUser}, job.Counts{}, nextCommit, job.ClassNone, 0, 0, job.ReasonCanceledByUser},
		{"drained", verdict.Verdict{Reason: job.ReasonDrained}, job.Counts{Infra: 9, Job: 9}, nextRelease, job.ClassShutdown, 0, 0, job.ReasonDrained},
		{"lease lost", verdict.Verdict{Reason: job.ReasonLeaseLost}, job.Counts{}, nextDrop, job.ClassNone, 0, 0, job.ReasonLeaseLost},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			tt.v.Message = "the cause"
			d := decide(tt.v, tt.counts, b)
			if d.next != tt.next || d.class != tt.class || d.delay != tt.delay || d.left != tt.left || d.verdict.Reason != tt.reason {
				t.Errorf("got next %d, class %s, delay %s, left %d, reason %s; want %d, %s, %s, %d, %s",
					d.next, d.class, d.delay, d.left, d.verdict.Reason, tt.next, tt.class, tt.delay, tt.left, tt.reason)
			}
			if !strings.Contains(d.verdict.Message, "the cause") {
				t.Errorf("message lost its cause: %q", d.verdict.Message)
			}
		})
	}
}

// TestDecide_Untouched: a job that nothing was done for pays nothing, also when its budget is used up.
func TestDecide_Untouched(t *testing.T) {
	t.Parallel()
	d := decide(verdict.Of(job.ReasonEngineUnavailable, "m"), job.Counts{Infra: 3}, budgets{infra: 2, untouched: true})
	if d.next != nextRelease || d.left != 0 || d.delay != 0 {
		t.Errorf("got next %d, left %d, delay %s; want it released", d.next, d.left, d.delay)
	}
}

func TestDecide_NoInfraBudget(t *testing.T) {
	t.Parallel()
	d := decide(verdict.Verdict{Outcome: job.Errored, Reason: job.ReasonInternal, Message: "m"}, job.Counts{}, budgets{infra: -1})
	if d.next != nextCommit || d.verdict.Reason != job.ReasonInfraBudget {
		t.Errorf("got %d, %s; want a commit of infra_budget", d.next, d.verdict.Reason)
	}
	if got, want := d.verdict.Message, "1 infrastructure failures; the last one (internal): m"; got != want {
		t.Errorf("got message %q, want %q", got, want)
	}
}
