package deploy

import (
	"context"
	"io"
	"net"
	"net/http"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/collectors"
	"github.com/prometheus/common/expfmt"
	"github.com/prometheus/common/model"

	"slipway/job"
	"slipway/metrics"
	"slipway/runner"
)

// labelsOf maps the name of each series of a scrape to its labels and their values.
type labelsOf map[string]map[string]map[string]bool

// scrape drives a Recorder as a worker does, and reads /metrics over HTTP.
func scrape(t *testing.T) labelsOf {
	t.Helper()
	reg := prometheus.NewRegistry()
	rec := metrics.New(reg, "default")
	health := metrics.NewHealth(t.Context(), rec.IsDraining, checks("nats", "engine", "store", "disk")...)
	reg.MustRegister(health, metrics.QueueErrors(func() uint64 { return 1 }), collectors.NewGoCollector(), collectors.NewProcessCollector(collectors.ProcessCollectorOpts{}),
		metrics.QueueCollector(t.Context(), func(context.Context) ([]metrics.Depth, error) {
			return []metrics.Depth{{Queue: "default", Priority: string(job.PriorityHigh), Pending: 1, InFlight: 1, Oldest: time.Second}}, nil
		}),
		metrics.RoomCollector(t.Context(), func(context.Context) (uses []metrics.StreamUse, err error) {
			for _, part := range []string{"jobs", "scheduled", "results", "dead", "events", "records", "workers"} {
				uses = append(uses, metrics.StreamUse{Part: part, Bytes: 1, MaxBytes: 2})
			}
			return uses, nil
		}),
		metrics.OutboxCollector(func() metrics.OutboxUse { return metrics.OutboxUse{} }))
	driveAll(t, rec)
	body := fetch(t, metrics.Handler(metrics.HandlerConfig{Gatherer: reg, Health: health}))
	parser := expfmt.NewTextParser(model.UTF8Validation)
	families, err := parser.TextToMetricFamilies(strings.NewReader(body))
	if err != nil {
		t.Fatalf("parse the scrape: %v", err)
	}
	out := labelsOf{}
	for name, f := range families {
		names := []string{name}
		if f.GetType().String() == "HISTOGRAM" {
			names = []string{name + "_bucket", name + "_sum", name + "_count"}
		}
		for _, n := range names {
			out[n] = map[string]map[string]bool{}
			for _, m := range f.GetMetric() {
				for _, l := range m.GetLabel() {
					out.add(n, l.GetName(), l.GetValue())
				}
			}
			if strings.HasSuffix(n, "_bucket") {
				out.add(n, "le", "+Inf")
			}
		}
	}
	return out
}

func (o labelsOf) add(metric, label, value string) {
	if o[metric][label] == nil {
		o[metric][label] = map[string]bool{}
	}
	o[metric][label][value] = true
}

func checks(names ...string) []metrics.Check {
	var out []metrics.Check
	for _, n := range names {
		out = append(out, metrics.Check{Name: n, Run: func(context.Context) error { return nil }})
	}
	return out
}

// driveAll calls every method of runner.Observer once; a new one fails here.
func driveAll(t *testing.T, o runner.Observer) {
	t.Helper()
	now := time.Now()
	calls := map[string]func(){
		"Slots":       func() { o.Slots(2, 1) },
		"JobClaimed":  func() { o.JobClaimed("default", time.Second) },
		"PhaseDone":   func() { o.PhaseDone("create", time.Second, false) },
		"StepDone":    func() { o.StepDone(job.StepSucceeded, time.Second) },
		"StepRetried": func() { o.StepRetried() },
		"JobDone": func() {
			o.JobDone(&job.Result{Outcome: job.Succeeded, StartedAt: now, FinishedAt: now.Add(time.Second)})
		},
		"JobRetried": func() { o.JobRetried(job.ClassInfra, job.ReasonImagePull) },
		"LeaseLost":  func() { o.LeaseLost(true) },
		"Heartbeat":  func() { o.Heartbeat(true) },
		"Synced":     func() { o.Synced("push", "added", 1, 1) },
		"Conflict":   func() { o.Conflict() },
		"LogBytes":   func() { o.LogBytes(2) },
		"LogDropped": func() { o.LogDropped(1, "slow") },
		"LogKept":    func() { o.LogKept(2, 1, "limit") },
		"Leftover":   func() { o.Leftover() },
		"Reaped":     func() { o.Reaped(1) },
		"Draining":   func() { o.Draining() },
	}
	typ := reflect.TypeFor[runner.Observer]()
	for i := range typ.NumMethod() {
		name := typ.Method(i).Name
		call, ok := calls[name]
		if !ok {
			t.Errorf("runner.Observer has the method %s, which this test does not call", name)
			continue
		}
		call()
	}
}

// fetch serves h as a worker does, and reads /metrics.
func fetch(t *testing.T, h http.Handler) string {
	t.Helper()
	ln, err := metrics.Listen(t.Context(), "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	ctx, stop := context.WithCancel(t.Context())
	served := make(chan error, 1)
	go func() { served <- metrics.ServeListener(ctx, ln, h) }()
	defer func() {
		stop()
		if err := <-served; err != nil {
			t.Errorf("serve: %v", err)
		}
	}()
	client := &http.Client{Transport: &http.Transport{DisableKeepAlives: true, DialContext: (&net.Dialer{}).DialContext}}
	res, err := client.Get("http://" + ln.Addr().String() + "/metrics")
	if err != nil {
		t.Fatal(err)
	}
	defer res.Body.Close()
	body, err := io.ReadAll(res.Body)
	if err != nil || res.StatusCode != http.StatusOK {
		t.Fatalf("GET /metrics: %s, %v", res.Status, err)
	}
	return string(body)
}
