package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"strings"
	"testing"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"slipway/job"
	"slipway/job/natsqueue"
	"slipway/job/natsqueue/natsserver"
)

// doctor runs worker doctor, and returns what each check found last.
func (b *bundle) doctor(args ...string) (map[string]finding, int) {
	b.t.Helper()
	out, errOut, code := b.run(append([]string{"doctor", "-o", "json"}, args...)...)
	found := map[string]finding{}
	for line := range strings.Lines(out) {
		var f finding
		if err := json.Unmarshal([]byte(line), &f); err != nil {
			b.t.Fatalf("%v: %s\n%s", err, line, errOut)
		}
		found[f.Check] = f
	}
	return found, code
}

func TestDoctor_SaysWhatIsWrong(t *testing.T) {
	b := setup(t, noEngine, "SLIPWAY_NATS_URL=nats://127.0.0.1:1", "SLIPWAY_S3_ENDPOINT=http://127.0.0.1:1", "SLIPWAY_S3_BUCKET=b",
		"SLIPWAY_S3_ACCESS_KEY=a", "SLIPWAY_S3_SECRET_KEY=s")
	found, code := b.doctor()
	if code != 1 {
		t.Errorf("exit code %d, want 1", code)
	}
	for check, setting := range map[string]string{"engine": "DOCKER_HOST", "queue": "SLIPWAY_NATS_URL", "store": "SLIPWAY_S3_ENDPOINT"} {
		if f := found[check]; f.Status != fail || !strings.Contains(f.Advice, setting) {
			t.Errorf("%s: got %+v, want a failure that names %s", check, f, setting)
		}
	}
	if found["policy"].Status != ok {
		t.Errorf("policy: got %+v, want ok", found["policy"])
	}
}

// startNATS starts a server with the configuration file config, and returns its URL.
func startNATS(t *testing.T, config string) string {
	t.Helper()
	opts := natsserver.Options{Dir: t.TempDir()}
	if config != "" {
		opts.Config = writeFile(t, config)
	}
	srv, err := natsserver.Start(opts)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(srv.Close)
	return srv.ClientURL()
}

func connect(t *testing.T, cfg natsqueue.Config) *natsqueue.Conn {
	t.Helper()
	conn, err := natsqueue.Connect(t.Context(), cfg)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(conn.Close)
	return conn
}

// TestDoctor_OnlyLooks: what a mistyped prefix or queue would make stays on the server, so nothing is made unasked.
func TestDoctor_OnlyLooks(t *testing.T) {
	url := startNATS(t, "")
	b := setup(t, noEngine, "SLIPWAY_NATS_URL="+url)
	for _, tc := range []struct {
		args   []string
		status status
		detail string
	}{
		{nil, warn, "no streams of prefix slipway"},
		{[]string{"--setup"}, ok, "were made"},
		{nil, ok, "are there"},
		{[]string{"--setup"}, ok, "are there"},
		{[]string{"--queues", "default,other"}, warn, "other_normal"},
		{[]string{"--queues", "default,other"}, warn, "not there yet: consumer other_high, consumer other_normal, consumer other_low"}, // the first look made none
		{[]string{"--nats-prefix", "slipwya"}, warn, "no streams of prefix slipwya"},
	} {
		found, _ := b.doctor(tc.args...)
		f := found["queue"]
		if f.Status != tc.status || !strings.Contains(f.Detail, tc.detail) || (f.Status == warn) != strings.Contains(f.Advice, "worker serve makes") {
			t.Errorf("doctor %v: got %+v, want %s and %q, and an advice with a warning", tc.args, f, tc.status, tc.detail)
		}
	}
	if _, err := connect(t, natsqueue.Config{URL: url, Prefix: "slipwya"}).Workers(t.Context()); !errors.Is(err, job.ErrNotSetUp) {
		t.Errorf("the queue of a mistyped prefix: got %v, want none", err)
	}
}

// TestDoctor_Limits: a worker's settings change no stream that exists; doctor shows what differs, and changes it when told to.
func TestDoctor_Limits(t *testing.T) {
	url := startNATS(t, "")
	if err := connect(t, natsqueue.Config{URL: url}).Setup(t.Context()); err != nil {
		t.Fatal(err)
	}
	b := setup(t, noEngine, "SLIPWAY_NATS_URL="+url, "SLIPWAY_NATS_EVENTS_AGE=1h", "SLIPWAY_NATS_EVENTS_BYTES=1GiB")
	for _, tc := range []struct {
		args   []string
		status status
		want   []string
	}{
		{nil, warn, []string{"nats.events_age of stream slipway-EVENTS is 24h0m0s; the setting is 1h0m0s", "256MiB; the setting is 1GiB", "--set-limits"}},
		{[]string{"--setup"}, warn, []string{"24h0m0s", "deletes the oldest"}},
		{[]string{"--set-limits"}, ok, []string{"are there"}},
		{nil, ok, []string{"are there"}},
	} {
		found, _ := b.doctor(tc.args...)
		f := found["queue"]
		for _, want := range tc.want {
			if f.Status != tc.status || !strings.Contains(f.Detail+f.Advice, want) {
				t.Errorf("doctor %v: got %+v, want %s and %q", tc.args, f, tc.status, want)
			}
		}
	}
}

// TestDoctor_Room: doctor shows how much each stream has of what it may have, and warns of one that has no limit, of one that is
// nearly full, and of a store that takes nothing.
func TestDoctor_Room(t *testing.T) {
	url := startNATS(t, "")
	conn := connect(t, natsqueue.Config{URL: url})
	if err := conn.Setup(t.Context()); err != nil {
		t.Fatal(err)
	}
	b := setup(t, noEngine, "SLIPWAY_NATS_URL="+url)
	nc, err := nats.Connect(url)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(nc.Close)
	js, err := jetstream.New(nc)
	if err != nil {
		t.Fatal(err)
	}
	limit := func(stream string, most int64) func() {
		return func() {
			s, err := js.Stream(t.Context(), stream)
			if err != nil {
				t.Fatal(err)
			}
			cfg := s.CachedInfo().Config
			cfg.MaxBytes = most
			if _, err := js.UpdateStream(t.Context(), cfg); err != nil {
				t.Fatal(err)
			}
		}
	}
	letters := func() {
		limit("slipway-DEAD", 2<<20)()
		for _, id := range []string{"a", "b"} {
			if _, err := js.Publish(t.Context(), "slipway.X.default."+id+".1", make([]byte, 900<<10)); err != nil {
				t.Fatal(err)
			}
		}
	}
	for _, tc := range []struct {
		name   string
		before func()
		status status
		want   []string
	}{
		{"empty", func() {}, ok, []string{"slipway-SCHED has 0B of 256MiB", "KV_slipway-jobs has 0B of 512MiB"}},
		{"an older queue", limit("slipway-RESULTS", -1), warn, []string{"no reserve: slipway-RESULTS may take", "slipway-RESULTS has 0B of no limit", "--set-limits"}},
		{"letters", letters, warn, []string{"nearly full: slipway-DEAD\nslipway-DEAD has 1.8MiB of 2MiB", "submit dead drop"}},
	} {
		tc.before()
		found, _ := b.doctor()
		f := found["room"]
		for _, want := range tc.want {
			if f.Status != tc.status || !strings.Contains(f.Detail+f.Advice, want) {
				t.Errorf("%s: got %+v, want %s and %q", tc.name, f, tc.status, want)
			}
		}
	}
}

// TestDoctor_HalfSetUp: of a queue that lacks some streams, these are named, at once, and not what follows from it.
func TestDoctor_HalfSetUp(t *testing.T) {
	for _, stream := range []string{"KV_slipway-workers", "KV_slipway-jobs", "slipway-JOBS", "slipway-DEAD"} {
		t.Run(stream, func(t *testing.T) {
			t.Parallel()
			url := startNATS(t, "")
			if err := connect(t, natsqueue.Config{URL: url}).Setup(t.Context()); err != nil {
				t.Fatal(err)
			}
			nc, err := nats.Connect(url)
			if err != nil {
				t.Fatal(err)
			}
			defer nc.Close()
			js, err := jetstream.New(nc)
			if err != nil {
				t.Fatal(err)
			}
			if err := js.DeleteStream(t.Context(), stream); err != nil {
				t.Fatal(err)
			}
			b := setup(t, noEngine, "SLIPWAY_NATS_URL="+url)
			found, _ := b.doctor()
			if f := found["queue"]; f.Status != warn || !strings.Contains(f.Detail, "not there yet: stream "+stream) || strings.Contains(f.Detail, "\n") {
				t.Errorf("got %+v, want a warning that names %s alone", f, stream)
			}
			found, _ = b.doctor("--setup")
			if f := found["queue"]; f.Status != ok || !strings.Contains(f.Detail, "completed") {
				t.Errorf("--setup: got %+v, want ok", f)
			}
		})
	}
}

// TestDoctor_Timing: who is told that the timing differs is told nothing of rights.
func TestDoctor_Timing(t *testing.T) {
	url := startNATS(t, "")
	conn := connect(t, natsqueue.Config{URL: url})
	if err := conn.Setup(t.Context()); err != nil {
		t.Fatal(err)
	}
	w, err := conn.Consumer(t.Context(), natsqueue.ConsumerConfig{Worker: "w1"})
	if err != nil {
		t.Fatal(err)
	}
	defer w.Close(t.Context())
	b := setup(t, noEngine, "SLIPWAY_NATS_URL="+url)
	for _, args := range [][]string{{"--timing-ack-wait", "2m"}, {"--setup", "--timing-ack-wait", "2m"}} {
		found, _ := b.doctor(args...)
		f := found["queue"]
		if f.Status != fail || strings.Count(f.Detail, "timing.ack_wait") != 1 || !strings.Contains(f.Detail, "w1") ||
			!strings.Contains(f.Advice, "same timing") || strings.Contains(f.Advice, "right") {
			t.Errorf("%v: got %+v, want a failure that says all, once, and advises about the timing alone", args, f)
		}
	}
}

// TestDoctor_Rights: missing ones are named, with the setting that they hang on.
func TestDoctor_Rights(t *testing.T) {
	const users = `authorization { users: [
		{user: all, password: p}
		{user: some, password: p, permissions: {publish: {deny: [%q]}}}
	] }`
	for denied, args := range map[string][]string{
		"$JS.API.STREAM.CREATE.slipway-JOBS": {"--setup"},
		"slipway.X.default.probe.0":          nil,
	} {
		url := startNATS(t, fmt.Sprintf(users, denied))
		if args == nil {
			if err := connect(t, natsqueue.Config{URL: strings.Replace(url, "://", "://all:p@", 1)}).Setup(t.Context()); err != nil {
				t.Fatal(err)
			}
		}
		found, _ := setup(t, noEngine, "SLIPWAY_NATS_URL="+strings.Replace(url, "://", "://some:p@", 1)).doctor(args...)
		if f := found["queue"]; f.Status != fail || !strings.Contains(f.Detail, denied) || !strings.Contains(f.Advice, "SLIPWAY_NATS_CREDS") {
			t.Errorf("without the right to %s: got %+v, want a failure that names it, and the setting", denied, f)
		}
	}
}

// TestDoctor_Metrics: an address that is taken is told before serve fails on it.
func TestDoctor_Metrics(t *testing.T) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	taken := l.Addr().String()
	b := setup(t, noEngine, "SLIPWAY_NATS_URL=nats://127.0.0.1:1")
	for addr, want := range map[string]finding{
		taken:           {Status: warn, Detail: taken + " is taken", Advice: "--metrics-addr"},
		"off":           {Status: ok, Detail: "metrics.addr is off"},
		"127.0.0.1:0":   {Status: ok, Detail: "is free"},
		"192.0.2.1:464": {Status: fail, Detail: "192.0.2.1", Advice: "--metrics-addr"},
	} {
		found, _ := b.doctor("--metrics-addr", addr)
		if got := found["metrics"]; got.Status != want.Status || !strings.Contains(got.Detail, want.Detail) || !strings.Contains(got.Advice, want.Advice) {
			t.Errorf("%s: got %+v, want %+v", addr, got, want)
		}
	}
	if _, errOut, code := b.run("serve", "--metrics-addr", taken); code != 3 || !strings.Contains(errOut, taken+" is taken by another program") || !strings.Contains(errOut, "SLIPWAY_METRICS_ADDR") {
		t.Errorf("serve: code %d, stderr %q, want 3, that it is taken, and the setting", code, errOut)
	}
}

func TestMovedFrom(t *testing.T) {
	if got := movedFrom("nats://127.0.0.1:4222", "http://127.0.0.1:7070", "127.0.0.1:9464"); len(got) != 0 {
		t.Errorf("the usual addresses: got %q, want no note", got)
	}
	got := movedFrom("nats://127.0.0.1:40001", "http://127.0.0.1:7070", "127.0.0.1:40002")
	if len(got) != 2 || !strings.HasPrefix(got[0], "127.0.0.1:4222 is taken") || !strings.HasPrefix(got[1], "127.0.0.1:9464 is taken") {
		t.Errorf("two others: got %q, want a note on each", got)
	}
}
