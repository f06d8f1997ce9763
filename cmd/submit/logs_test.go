package main

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"slipway/devserver"
	"slipway/job"
	"slipway/job/natsqueue"
	"slipway/runner"
	"slipway/sync/s3store"
	"slipway/test/devprogram"
	"slipway/test/eventually"
)

// withGateway starts an S3 gateway and opens its store for a worker. environ is what submit needs to read it.
func (b *bundle) withGateway() (store *s3store.Store, environ []string) {
	b.t.Helper()
	g, err := devserver.Start(b.t.Context(), devserver.Options{Programs: devprogram.Folder(b.t, devprogram.S3), S3: &devserver.S3{Dir: b.t.TempDir()}})
	if err != nil {
		b.t.Fatal(err)
	}
	b.t.Cleanup(func() {
		if err := g.Close(); err != nil {
			b.t.Errorf("close the gateway: %v", err)
		}
	})
	store, err = s3store.New(s3store.Config{Endpoint: g.Endpoint, Bucket: "work", PathStyle: true, AccessKey: g.AccessKey, SecretKey: g.SecretKey})
	if err != nil {
		b.t.Fatal(err)
	}
	b.t.Cleanup(store.Close)
	if err := store.EnsureBucket(b.t.Context()); err != nil {
		b.t.Fatal(err)
	}
	return store, []string{
		"SLIPWAY_S3_ENDPOINT=" + g.Endpoint, "SLIPWAY_S3_BUCKET=work", "SLIPWAY_S3_ACCESS_KEY=" + g.AccessKey, "SLIPWAY_S3_SECRET_KEY=" + g.SecretKey,
	}
}

// evict removes all events from the queue, as their age does.
func (b *bundle) evict() {
	b.t.Helper()
	nc, err := nats.Connect("", nats.InProcessServer(b.srv))
	if err != nil {
		b.t.Fatal(err)
	}
	defer nc.Close()
	js, err := jetstream.New(nc)
	if err != nil {
		b.t.Fatal(err)
	}
	events, err := js.Stream(b.t.Context(), "slipway-EVENTS")
	if err != nil {
		b.t.Fatal(err)
	}
	if err := events.Purge(b.t.Context()); err != nil {
		b.t.Fatal(err)
	}
}

// runJob submits a job and returns its id once it has ended.
func (b *bundle) runJob(spec string) string {
	b.t.Helper()
	b.stdin(spec)
	out, errOut, _ := b.run("run", "-o", "json", "-")
	first, _, _ := strings.Cut(out, "\n")
	var s struct {
		JobID string `json:"job_id"`
	}
	if err := json.Unmarshal([]byte(first), &s); err != nil {
		b.t.Fatalf("submit: %v\n%s%s", err, out, errOut)
	}
	return s.JobID
}

const logsJob = `image: x
steps:
  - {name: short, run: "echo short; echo err >&2"}
  - {name: long, run: "seq 1 20000"}
  - {name: huge, run: "seq 1 60000; exit 3"}
`

// TestLogs_LongAfter: once the queue keeps no events of a job, its output comes from the store, or from the result; what is
// missing is said, with where it lies. 60,000 numbers are 348,894 bytes, more than a log may have here.
func TestLogs_LongAfter(t *testing.T) {
	b := setup(t)
	store, environ := b.withGateway()
	b.withWorker(b.withQueue(), func(c *runner.Config) {
		c.Store, c.StoreName, c.StepLogLimit = store, "s3://work at http://s3", 200<<10
	})
	id := b.runJob(logsJob)
	whole, _, code := b.run("logs", "--step", "long", id)
	if code != 0 || strings.Count(whole, "\n") != 20000 {
		t.Fatalf("with events: code %d, %d lines, want 0 and 20000", code, strings.Count(whole, "\n"))
	}
	b.evict()

	out, errOut, code := b.run("logs", id)
	if code != 4 || !strings.Contains(out, "short\n") || !strings.Contains(out, "1\n2\n3\n") || strings.Count(out, "\n") > 10_000 {
		t.Errorf("without a store: code %d, %d lines, want 4, and heads and tails\n%s", code, strings.Count(out, "\n"), errOut)
	}
	for _, want := range []string{"step 2: long", "✗ failed (exit code 3)", "logs/default/" + id, "s3://work at http://s3", "SLIPWAY_S3_BUCKET", "events are missing"} {
		if !strings.Contains(errOut, want) {
			t.Errorf("without a store: stderr lacks %q:\n%s", want, errOut)
		}
	}

	b.app.sys.Environ = environ
	if out, errOut, code := b.run("logs", "--step", "long", id); code != 0 || out != whole {
		t.Errorf("the log of step long: code %d, %d bytes, want 0 and the %d of its events\n%s", code, len(out), len(whole), errOut)
	}
	out, errOut, code = b.run("logs", "--step", "3", id)
	if code != 4 || !strings.HasPrefix(out, "1\n2\n") || !strings.HasSuffix(out, "\n60000\n") || !strings.Contains(errOut, "left out here") || !strings.Contains(errOut, "kept nowhere") {
		t.Errorf("the log of step huge: code %d, %d bytes, want 4, both ends, and what is between them\n%s", code, len(out), errOut)
	}
	if out, errOut, code := b.run("logs", "--tail", "2", id); code != 0 || out != "59999\n60000\n" || strings.Contains(errOut, "nowhere") {
		t.Errorf("--tail 2: code %d, %q, want 0 and two lines: what is missing was not asked for\n%s", code, out, errOut)
	}
	if out, _, code := b.run("logs", "--tail", "1", "--step", "long", "--timestamps", id); code != 0 || out != "-                        20000\n" {
		t.Errorf("--timestamps: code %d, %q, want 0, and no time for a line of a log", code, out)
	}
	if _, errOut, code := b.run("logs", "-f", id); code != 1 || !strings.Contains(errOut, "failed (exit)") {
		t.Errorf("-f: code %d, want that of the outcome, 1\n%s", code, errOut)
	}
	if _, errOut, code := b.run("logs", "--step", "lnog", id); code != 2 || !strings.Contains(errOut, `did you mean "long"?`) {
		t.Errorf("an unknown step: code %d, want 2\n%s", code, errOut)
	}
	b.checkJSON(id)
}

// checkJSON checks that the lines of JSON have all that the text has.
func (b *bundle) checkJSON(id string) {
	b.t.Helper()
	out, _, code := b.run("logs", "-o", "json", id)
	var output, left int64
	ends := 0
	for line := range strings.Lines(out) {
		var e job.Event
		if err := json.Unmarshal([]byte(line), &e); err != nil {
			b.t.Fatalf("%v: %.200s", err, line)
		}
		switch e.Kind {
		case job.EventOutput:
			output += int64(len(e.Data))
		case job.EventDropped:
			left += e.Bytes
		case job.EventStepEnd:
			ends++
		}
	}
	if want := int64(len("short\nerr\n") + 108_894 + 348_894); code != 4 || output+left != want || left == 0 || ends != 3 {
		b.t.Errorf("json: code %d, %d bytes and %d left out, %d steps; want 4, %d in all and 3", code, output, left, ends, want)
	}
}

// TestLogs_BrokenSettings: settings of the store that make no sense count if they were given here, or if the store is needed.
func TestLogs_BrokenSettings(t *testing.T) {
	b := setup(t)
	b.withWorker(b.withQueue())
	id := b.runJob("image: x\nsteps: [{run: seq 1 5000}]")
	b.app.sys.Environ = []string{"SLIPWAY_S3_BUCKET=work", "SLIPWAY_S3_ACCESS_KEY=half"} // a worker's, perhaps, and not all of them
	if out, errOut, code := b.run("logs", id); code != 0 || errOut != "" && strings.Contains(errOut, "s3") || strings.Count(out, "\n") != 5000 {
		t.Errorf("with events: code %d, %d lines, want 0 and 5000\n%s", code, strings.Count(out, "\n"), errOut)
	}
	if _, errOut, code := b.run("logs", "--s3-bucket", "work", id); code != 2 || !strings.Contains(errOut, "SLIPWAY_S3_ACCESS_KEY") {
		t.Errorf("a flag: code %d, want 2 and what is wrong with the settings\n%s", code, errOut)
	}
	b.evict()
	if out, errOut, code := b.run("logs", id); code != 4 || !strings.HasPrefix(out, "1\n") || !strings.Contains(errOut, "SLIPWAY_S3_ACCESS_KEY") {
		t.Errorf("without events: code %d, want 4, the head, and what is wrong with the settings\n%s", code, errOut)
	}
}

// TestLogs_FollowTail: the last lines so far, then what comes, to the end.
func TestLogs_FollowTail(t *testing.T) {
	b := setup(t)
	b.withWorker(b.withQueue())
	gate := filepath.Join(openFolder(t), "gate")
	b.stdin("image: x\nsteps:\n  - {name: one, run: 'seq 1 100; while [ ! -e " + gate + " ]; do sleep 0.05; done; echo more'}\n  - {name: two, run: echo other}\n")
	out, _, _ := b.run("create", "-")
	id := strings.TrimSpace(out)
	done := make(chan struct{})
	go func() {
		defer close(done)
		eventually.True(t, 20*time.Second, "the end so far is shown", func() bool { return strings.Contains(b.out.String(), "\n100\n") })
		if err := os.WriteFile(gate, nil, 0o600); err != nil {
			t.Error(err)
		}
	}()
	eventually.True(t, 20*time.Second, "the step prints", func() bool { out, _, _ := b.run("logs", id); return strings.Contains(out, "100\n") })
	out, errOut, code := b.run("logs", "-f", "--tail", "2", "--step", "one", id)
	<-done
	if code != 0 || out != "99\n100\nmore\n" || strings.Contains(errOut, "step 2") || !strings.Contains(errOut, "step 1: one") {
		t.Errorf("code %d, stdout %q, stderr %q; want 0, two lines and what came after them, of one step", code, out, errOut)
	}
}

// openFolder is a folder that the user of a step can look into, unlike one of t.TempDir under root.
func openFolder(t *testing.T) string {
	t.Helper()
	dir, err := os.MkdirTemp("", "slipway-logs-") //nolint:usetesting // see above
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = os.RemoveAll(dir) })
	if err := os.Chmod(dir, 0o755); err != nil {
		t.Fatal(err)
	}
	return dir
}

// TestLogs_Fair: a job that prints without end does not push the events of another one out of the queue, and what its own live
// view lacks is counted to the byte.
func TestLogs_Fair(t *testing.T) {
	b := setup(t)
	seen := &counted{}
	conn := b.withQueue(func(c *natsqueue.Config) { c.EventsBytes = 2 << 20 })
	b.withWorker(conn, func(c *runner.Config) { c.LiveLimit, c.Observer = 128<<10, seen })
	quiet := b.runJob("image: x\nsteps: [{run: echo here}]")
	loud := b.runJob("image: x\nsteps: [{run: seq 1 900000}]") // 6.2 MB
	if hint := b.err.String(); !strings.Contains(hint, "submit logs "+loud+" shows what is kept") {
		t.Errorf("run does not say where the rest is: %q", hint)
	}
	if out, errOut, code := b.run("logs", quiet); code != 0 || out != "here\n" || !strings.Contains(errOut, "taken by worker w1") {
		t.Errorf("the quiet job: code %d, stdout %q, want 0, and all of its events\n%s", code, out, errOut)
	}
	out, errOut, code := b.run("logs", loud)
	if code != 4 || len(out) < 24<<10 || len(out) > 128<<10 || !strings.HasSuffix(out, "\n900000\n") || !strings.Contains(errOut, "more than the live view has room for") {
		t.Errorf("the loud job: code %d, %d bytes, want 4, its share, and why it is not more\n%s", code, len(out), errOut)
	}
	seen.mu.Lock()
	defer seen.mu.Unlock()
	if total := int64(len("here\n") + 6_188_895); seen.printed != total || seen.printed-seen.dropped != int64(len("here\n")+len(out)) || seen.kept+seen.lost != total {
		t.Errorf("printed %d, dropped %d, kept %d, lost %d; want %d printed, of which readers have %d", seen.printed, seen.dropped, seen.kept, seen.lost, total, len(out))
	}
}

// counted is an Observer that counts output.
type counted struct {
	runner.NopObserver
	mu                           sync.Mutex
	printed, dropped, kept, lost int64
}

func (c *counted) LogBytes(n int64) { c.add(&c.printed, n) }

func (c *counted) LogDropped(n int64, _ string) { c.add(&c.dropped, n) }

func (c *counted) LogKept(kept, lost int64, _ string) {
	c.add(&c.kept, kept)
	c.add(&c.lost, lost)
}

func (c *counted) add(to *int64, n int64) {
	c.mu.Lock()
	defer c.mu.Unlock()
	*to += n
}
