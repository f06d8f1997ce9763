package metrics

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/testutil"
	"go.uber.org/goleak"

	"slipway/job"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// series returns the value of every series of reg, by name and labels; a
// histogram gives its _count and _sum.
func series(t *testing.T, reg prometheus.Gatherer) map[string]float64 {
	t.Helper()
	families, err := reg.Gather()
	if err != nil {
		t.Fatalf("Gather: %v", err)
	}
	out := make(map[string]float64)
	for _, f := range families {
		for _, m := range f.GetMetric() {
			var labels []string
			for _, l := range m.GetLabel() {
				labels = append(labels, fmt.Sprintf("%s=%q", l.GetName(), l.GetValue()))
			}
			key := "{" + strings.Join(labels, ",") + "}"
			switch {
			case m.GetHistogram() != nil:
				out[f.GetName()+"_count"+key] = float64(m.GetHistogram().GetSampleCount())
				out[f.GetName()+"_sum"+key] = m.GetHistogram().GetSampleSum()
			case m.GetCounter() != nil:
				out[f.GetName()+key] = m.GetCounter().GetValue()
			default:
				out[f.GetName()+key] = m.GetGauge().GetValue()
			}
		}
	}
	return out
}

// TestRecorder calls one method and looks at all the series that moved by it.
// start is when the jobs of the tests began.
var start = time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)

// recorderTests say by how much each call moves which series; no other series may move.
var recorderTests = []struct {
	name string
	call func(r *Recorder)
	want map[string]float64
}{
	{"slots", func(r *Recorder) { r.Slots(4, 1); r.Slots(4, 3) }, map[string]float64{
		"slipway_slots{}": 4, "slipway_slots_busy{}": 3,
	}},
	{"claimed", func(r *Recorder) { r.JobClaimed("q", 2*time.Second) }, map[string]float64{
		"slipway_jobs_claimed_total{}": 1, `slipway_queue_wait_seconds_count{queue="q"}`: 1, `slipway_queue_wait_seconds_sum{queue="q"}`: 2,
	}},
	{"clock skew", func(r *Recorder) { r.JobClaimed("q", -time.Hour) }, map[string]float64{
		"slipway_jobs_claimed_total{}": 1, `slipway_queue_wait_seconds_count{queue="q"}`: 1,
	}},
	{"claimed from another queue", func(r *Recorder) { r.JobClaimed("qq", time.Second) }, map[string]float64{
		"slipway_jobs_claimed_total{}": 1, `slipway_queue_wait_seconds_count{queue="other"}`: 1, `slipway_queue_wait_seconds_sum{queue="other"}`: 1,
	}},
	{"phase", func(r *Recorder) { r.PhaseDone("create", time.Second, true) }, map[string]float64{
		`slipway_phase_duration_seconds_count{phase="create"}`: 1, `slipway_phase_duration_seconds_sum{phase="create"}`: 1,
	}},
	{"phase failed", func(r *Recorder) { r.PhaseDone("cleanup", time.Second, false) }, map[string]float64{
		`slipway_phase_duration_seconds_count{phase="cleanup"}`: 1, `slipway_phase_duration_seconds_sum{phase="cleanup"}`: 1,
		`slipway_phase_failures_total{phase="cleanup"}`: 1,
	}},
	{"unknown phase", func(r *Recorder) { r.PhaseDone("make tea", 0, true) }, map[string]float64{
		`slipway_phase_duration_seconds_count{phase="other"}`: 1,
	}},
	{"step", func(r *Recorder) { r.StepDone(job.StepTimedOut, 3*time.Second) }, map[string]float64{
		`slipway_step_duration_seconds_count{status="timed_out"}`: 1, `slipway_step_duration_seconds_sum{status="timed_out"}`: 3,
	}},
	{"step retried", func(r *Recorder) { r.StepRetried() }, map[string]float64{"slipway_step_retries_total{}": 1}},
	{"job", func(r *Recorder) {
		r.JobDone(&job.Result{Outcome: job.Failed, Reason: job.ReasonExit, Queue: "q", StartedAt: start, FinishedAt: start.Add(time.Minute), Steps: []job.StepResult{
			{CPU: job.Duration(2 * time.Second)}, {CPU: job.Duration(time.Second)}, {CPU: -1},
		}})
	}, map[string]float64{
		`slipway_jobs_total{outcome="failed",reason="exit"}`:   1,
		`slipway_queue_jobs_total{outcome="failed",queue="q"}`: 1, `slipway_queue_cpu_seconds_total{queue="q"}`: 3,
		`slipway_queue_job_duration_seconds_count{queue="q"}`: 1, `slipway_queue_job_duration_seconds_sum{queue="q"}`: 60,
		`slipway_job_duration_seconds_count{outcome="failed"}`: 1,
		`slipway_job_duration_seconds_sum{outcome="failed"}`:   60,
	}},
	{"job that never started", func(r *Recorder) {
		r.JobDone(&job.Result{Outcome: job.Errored, Reason: job.ReasonSpecInvalid, FinishedAt: start})
	}, map[string]float64{`slipway_jobs_total{outcome="errored",reason="spec_invalid"}`: 1, `slipway_queue_jobs_total{outcome="errored",queue="other"}`: 1}},
	{"succeeded has no reason", func(r *Recorder) { r.JobDone(&job.Result{Outcome: job.Succeeded}) }, map[string]float64{
		`slipway_jobs_total{outcome="succeeded",reason="none"}`: 1, `slipway_queue_jobs_total{outcome="succeeded",queue="other"}`: 1,
	}},
	{"unknown outcome", func(r *Recorder) { r.JobDone(&job.Result{Outcome: "tired", Reason: "monday"}) }, map[string]float64{
		`slipway_jobs_total{outcome="other",reason="other"}`: 1, `slipway_queue_jobs_total{outcome="other",queue="other"}`: 1,
	}},
	{"no result", func(r *Recorder) { r.JobDone(nil) }, nil},
	{"retried", func(r *Recorder) { r.JobRetried(job.ClassInfra, job.ReasonImagePull) }, map[string]float64{
		`slipway_job_retries_total{class="infra",reason="image_pull"}`: 1,
	}},
	{"lease lost", func(r *Recorder) { r.LeaseLost(true); r.LeaseLost(false) }, map[string]float64{
		`slipway_lease_lost_total{cause="self_fence"}`: 1, `slipway_lease_lost_total{cause="taken"}`: 1,
	}},
	{"heartbeat", func(r *Recorder) { r.Heartbeat(true); r.Heartbeat(false); r.Heartbeat(true) }, map[string]float64{
		`slipway_heartbeats_total{result="ok"}`: 2, `slipway_heartbeats_total{result="failed"}`: 1,
	}},
	{"synced", func(r *Recorder) { r.Synced("push", "added", 3, 4096) }, map[string]float64{
		`slipway_sync_files_total{action="added",direction="push"}`: 3, `slipway_sync_bytes_total{direction="push"}`: 4096,
	}},
	{"negative numbers", func(r *Recorder) { r.Synced("pull", "restored", -1, -1); r.LogBytes(-1); r.Reaped(-1) }, nil},
	{"conflict", func(r *Recorder) { r.Conflict() }, map[string]float64{"slipway_workspace_conflicts_total{}": 1}},
	{"log bytes", func(r *Recorder) { r.LogBytes(10); r.LogDropped(4, "slow") }, map[string]float64{
		"slipway_log_bytes_total{}": 10, `slipway_log_dropped_bytes_total{loss="slow"}`: 4,
	}},
	{"log kept", func(r *Recorder) { r.LogKept(10, 4, "limit"); r.LogKept(1, 0, ""); r.LogKept(-1, -1, "tea") }, map[string]float64{
		"slipway_log_kept_bytes_total{}": 11, `slipway_log_lost_bytes_total{loss="limit"}`: 4,
	}},
	{"leftover", func(r *Recorder) { r.Leftover() }, map[string]float64{"slipway_leftovers_total{}": 1}},
	{"reaped", func(r *Recorder) { r.Reaped(2) }, map[string]float64{"slipway_reaped_total{}": 2}},
	{"draining twice", func(r *Recorder) { r.Draining(); r.Draining() }, map[string]float64{"slipway_draining{}": 1}},
}

func TestRecorder(t *testing.T) {
	for _, tt := range recorderTests {
		t.Run(tt.name, func(t *testing.T) {
			reg := prometheus.NewPedanticRegistry()
			r := New(reg, "q")
			before := series(t, reg)
			tt.call(r)
			after := series(t, reg)
			for key, v := range after {
				if got, want := v-before[key], tt.want[key]; got != want {
					t.Errorf("%s moved by %v, want %v", key, got, want)
				}
			}
			for key := range tt.want {
				if _, ok := after[key]; !ok {
					t.Errorf("no series %s", key)
				}
			}
		})
	}
}

// drive calls every method with the words of job n.
func drive(r *Recorder, n int) {
	word := fmt.Sprintf("job-%d", n)
	r.JobClaimed(word, time.Second)
	r.PhaseDone(word, time.Second, n%2 == 0)
	r.StepDone(job.StepStatus(word), time.Second)
	r.JobDone(&job.Result{Outcome: job.Outcome(word), Reason: job.Reason(word), Name: word, Queue: word})
	r.JobRetried(job.Class(word), job.Reason(word))
	r.Synced(word, word, 1, 1)
	r.LeaseLost(n%2 == 0)
	r.LogKept(1, 1, word)
	r.LogDropped(1, word)
}

func TestNoWordOfAJobMakesASeries(t *testing.T) {
	reg := prometheus.NewPedanticRegistry()
	r := New(reg)
	drive(r, 0)
	drive(r, 1)
	want := len(series(t, reg))
	for n := range 1000 {
		drive(r, n)
	}
	if got := len(series(t, reg)); got != want {
		t.Errorf("%d series after 1000 jobs, want %d as after the first two", got, want)
	}
}

func TestQueuesOfARecorderAreBounded(t *testing.T) {
	var queues []string
	for n := range 10 * maxQueues {
		queues = append(queues, fmt.Sprintf("q%d", n))
	}
	reg := prometheus.NewPedanticRegistry()
	r := New(reg, queues...)
	for _, q := range queues {
		r.JobClaimed(q, time.Second)
	}
	n := 0
	for key := range series(t, reg) {
		if strings.HasPrefix(key, "slipway_queue_wait_seconds_count{") {
			n++
		}
	}
	if got := series(t, reg)[`slipway_queue_wait_seconds_count{queue="other"}`]; n != maxQueues || got != 9*maxQueues+1 {
		t.Errorf("%d queues, %v waits of others, want %d and %d", n, got, maxQueues, 9*maxQueues+1)
	}
}

func TestEveryReasonExistsFromTheStart(t *testing.T) {
	reg := prometheus.NewPedanticRegistry()
	New(reg)
	got := series(t, reg)
	for _, reason := range job.Reasons() {
		n := 0
		for key := range got {
			if strings.HasPrefix(key, "slipway_jobs_total{") && strings.Contains(key, fmt.Sprintf("reason=%q", reason)) {
				n++
			}
		}
		if n != 1 {
			t.Errorf("reason %s has %d series, want 1", reason, n)
		}
	}
	for _, outcome := range job.Outcomes() {
		if _, ok := got[fmt.Sprintf("slipway_job_duration_seconds_count{outcome=%q}", outcome)]; !ok {
			t.Errorf("outcome %s has no duration", outcome)
		}
	}
}

func TestRecordersOnOneRegistryAddUp(t *testing.T) {
	reg := prometheus.NewPedanticRegistry()
	a, b := New(reg), New(reg)
	a.Slots(4, 2)
	b.Slots(2, 1)
	a.Slots(4, 0)
	a.Leftover()
	b.Leftover()
	a.Draining()
	got := series(t, reg)
	for key, want := range map[string]float64{
		"slipway_slots{}": 6, "slipway_slots_busy{}": 1, "slipway_leftovers_total{}": 2, "slipway_draining{}": 1,
	} {
		if got[key] != want {
			t.Errorf("%s = %v, want %v", key, got[key], want)
		}
	}
	if !a.IsDraining() || b.IsDraining() {
		t.Errorf("IsDraining = %v, %v, want true, false", a.IsDraining(), b.IsDraining())
	}
}

func TestRecordersOnTwoRegistriesShareNothing(t *testing.T) {
	regA, regB := prometheus.NewPedanticRegistry(), prometheus.NewPedanticRegistry()
	a := New(regA)
	New(regB)
	a.Leftover()
	if got := series(t, regB)["slipway_leftovers_total{}"]; got != 0 {
		t.Errorf("the other registry counted %v leftovers, want 0", got)
	}
}

func TestNewRefusesANameThatIsTaken(t *testing.T) {
	reg := prometheus.NewPedanticRegistry()
	reg.MustRegister(prometheus.NewGauge(prometheus.GaugeOpts{Name: "slipway_slots", Help: "something else"}))
	defer func() {
		if got := fmt.Sprint(recover()); !strings.Contains(got, "another part of the program uses the same name") {
			t.Errorf("panic = %q, want it to say that the name is taken", got)
		}
	}()
	New(reg)
	t.Error("New returned, want a panic")
}

func TestNamesFollowTheConventions(t *testing.T) {
	reg := prometheus.NewPedanticRegistry()
	New(reg)
	reg.MustRegister(QueueCollector(t.Context(), fixedDepth(Depth{Queue: "default", Priority: "high"})), NewHealth(t.Context(), nil))
	problems, err := testutil.GatherAndLint(reg)
	if err != nil {
		t.Fatal(err)
	}
	for _, p := range problems {
		t.Errorf("%s: %s", p.Metric, p.Text)
	}
}

func TestBucketsReachTheLongestTimeout(t *testing.T) {
	b := buckets()
	for i := 1; i < len(b); i++ {
		if b[i] <= b[i-1] {
			t.Errorf("bucket %d is %v, not above %v", i, b[i], b[i-1])
		}
	}
	if got, want := b[len(b)-1], (24 * time.Hour).Seconds(); got != want {
		t.Errorf("last bucket = %v, want %v", got, want)
	}
}
