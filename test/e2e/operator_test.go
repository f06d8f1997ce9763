package e2e

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/nats-io/nats.go/jetstream"

	"slipway/job"
	"slipway/job/natsqueue/natsserver"
	"slipway/test/eventually"
)

// TestOperator: what an operator sees of a fault of the surroundings, in the log, in the metrics and on /readyz, and that no
// job is lost by it.
func TestOperator(t *testing.T) {
	t.Run("the engine is away", engineAway)
	t.Run("the engine's disk is full", diskFull)
	t.Run("a stream is deleted", streamDeleted)
	t.Run("a right is taken away", rightTaken)
}

// seen waits until the worker's log holds words, and prints what an operator has to go by.
func (w *worker) seen(t *testing.T, words string) {
	t.Helper()
	eventually.True(t, 2*time.Minute, fmt.Sprintf("the log says %q", words), func() bool { return strings.Contains(w.log.String(), words) })
	for line := range strings.SplitSeq(w.log.String(), "\n") {
		if strings.Contains(line, words) {
			t.Logf("log: %.400s", line)
			break
		}
	}
	if w.hasEnded() {
		t.Logf("exit code %d", w.cmd.ProcessState.ExitCode())
		return
	}
	for line := range strings.SplitSeq(w.scrape(), "\n") {
		if strings.HasPrefix(line, "slipway_ready{") || strings.HasPrefix(line, "slipway_queue_errors_total") {
			t.Logf("metric: %s", line)
		}
	}
	res, err := http.Get(w.metrics + "/readyz")
	if err != nil {
		t.Fatal(err)
	}
	defer res.Body.Close()
	body, err := io.ReadAll(res.Body)
	if err != nil {
		t.Fatal(err)
	}
	t.Logf("/readyz: %s\n%s", res.Status, strings.TrimSpace(string(body)))
}

// ends waits until the worker has ended by itself.
func (w *worker) ends(t *testing.T) {
	t.Helper()
	select {
	case <-w.ended:
		t.Logf("exit code %d", w.cmd.ProcessState.ExitCode())
	case <-time.After(2 * time.Minute):
		t.Fatalf("worker %s goes on, and should have ended; log:\n%s", w.name, w.log)
	}
}

// engineAway: the connections to the engine break under a running job, and for a while there are no new ones. The job goes
// back as no fault of its own; nothing is fetched meanwhile, so that a waiting job is not charged.
func engineAway(t *testing.T) {
	t.Parallel() // it waits more than it works
	b := setup(t, shellImage)
	line := cutEngine(t)
	b.engine = line.host
	w := b.startWorker(t, "cut", "--slots", "1")
	running := b.create(t, sleep("5"))
	b.waitOutput(t, running, "started")
	line.cut()
	w.seen(t, "no jobs are fetched until the engine can make boxes")
	if w.ready() {
		t.Error("the worker is ready without an engine")
	}
	waiting := b.create(t, sleep("0"))
	line.mend()
	for _, id := range []job.ID{running, waiting} {
		r := b.result(t, id)
		t.Logf("%s: %s in attempt %d", id, r.Outcome, r.Attempt)
		if r.Outcome != job.Succeeded || id == waiting && r.Attempt != 1 {
			t.Errorf("got %s (%s) in attempt %d, want succeeded, and the job that waited in its first", r.Outcome, r.Message, r.Attempt)
		}
		b.assertOneResult(t, id)
	}
}

// diskFull: a worker whose engine has less room than it shall have does not begin, and says how much there is.
func diskFull(t *testing.T) {
	t.Parallel()
	b := setup(t, shellImage)
	if !strings.HasPrefix(cmp.Or(os.Getenv("DOCKER_HOST"), "unix://"), "unix://") {
		t.Skip("the engine is not behind a socket of this machine")
	}
	b.startWorker(t, "first").stop() // which makes the queue
	waiting := b.create(t, sleep("0"))
	full := b.launch(t, "full", "--docker-min-free", "1000TiB")
	eventually.True(t, time.Minute, "the worker ends, or is ready", func() bool { return full.hasEnded() || full.ready() })
	if !full.hasEnded() {
		t.Skip("the engine's folder is not on this machine, so that its room is not known")
	}
	t.Logf("exit code %d\n%s", full.cmd.ProcessState.ExitCode(), strings.TrimSpace(full.log.String()))
	if full.cmd.ProcessState.ExitCode() == 0 || !strings.Contains(full.log.String(), "its disk is full") {
		t.Error("want a failure that names the disk")
	}
	b.startWorker(t, "again")
	if r := b.result(t, waiting); r.Outcome != job.Succeeded || r.Attempt != 1 {
		t.Errorf("got %s (%s) in attempt %d, want succeeded in the first", r.Outcome, r.Message, r.Attempt)
	}
	b.assertOneResult(t, waiting)
}

// streamDeleted: somebody deletes the stream of waiting jobs under a running one. The running one gets its result. The worker
// does not make the stream anew by itself: it says so and ends, and the next worker that is started makes it.
func streamDeleted(t *testing.T) {
	t.Parallel() // it waits more than it works
	b := setup(t, shellImage)
	w := b.startWorker(t, "orphan", "--slots", "2")
	running := b.create(t, sleep("20"))
	b.waitOutput(t, running, "started")
	b.js(t, func(js jetstream.JetStream) error { return js.DeleteStream(t.Context(), "slipway-JOBS") })
	w.seen(t, "was deleted while this worker ran")
	w.ends(t)
	if code := w.cmd.ProcessState.ExitCode(); code == 0 {
		t.Error("got exit code 0, want a failure")
	}
	b.startWorker(t, "next")
	for _, id := range []job.ID{running, b.create(t, sleep("0"))} {
		if r := b.result(t, id); r.Outcome != job.Succeeded {
			t.Errorf("got %s (%s), want succeeded", r.Outcome, r.Message)
		}
		b.assertOneResult(t, id)
	}
}

// rightTaken: a worker that may not write records does not begin, and says which right it lacks.
func rightTaken(t *testing.T) {
	t.Parallel() // it waits more than it works
	b := setup(t, shellImage)
	dir := t.TempDir()
	config := filepath.Join(dir, "nats.conf")
	const users = `authorization { users: [
		{user: admin, password: a},
		{user: worker, password: w, permissions: {publish: {deny: ["$KV.slipway-jobs.>"]}}},
	] }`
	if err := os.WriteFile(config, []byte(users), 0o600); err != nil {
		t.Fatal(err)
	}
	srv, err := natsserver.Start(natsserver.Options{Dir: dir, Config: config})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(srv.Close)
	as := func(user string) string { return strings.Replace(srv.ClientURL(), "nats://", "nats://"+user+"@", 1) }
	b.natsURL = as("admin:a")
	w := b.startWorker(t, "admin")
	w.stop()
	waiting := b.create(t, sleep("0"))
	b.natsURL = as("worker:w")
	denied := b.launch(t, "denied")
	denied.ends(t)
	t.Log(strings.TrimSpace(denied.log.String()))
	if denied.cmd.ProcessState.ExitCode() == 0 || !strings.Contains(denied.log.String(), "$KV.slipway-jobs") {
		t.Error("want a failure that names the subject")
	}
	b.natsURL = as("admin:a")
	b.startWorker(t, "again")
	if r := b.result(t, waiting); r.Outcome != job.Succeeded || r.Attempt != 1 {
		t.Errorf("got %s (%s) in attempt %d, want succeeded in the first", r.Outcome, r.Message, r.Attempt)
	}
	b.assertOneResult(t, waiting)
}

// engineLine is a way to the engine that can be cut.
type engineLine struct {
	host, path, engine string

	mu    sync.Mutex
	l     net.Listener
	conns map[net.Conn]bool
	wg    sync.WaitGroup
}

// cutEngine listens on a socket of its own, and passes everything on to the engine.
func cutEngine(t *testing.T) *engineLine {
	t.Helper()
	engine, ok := strings.CutPrefix(os.Getenv("DOCKER_HOST"), "unix://")
	if !ok {
		if os.Getenv("DOCKER_HOST") != "" {
			t.Skip("the engine is not behind a socket of this machine")
		}
		engine = "/var/run/docker.sock"
	}
	dir, err := os.MkdirTemp("", "slw") //nolint:usetesting // the path of a socket must be short
	if err != nil {
		t.Fatal(err)
	}
	e := &engineLine{path: filepath.Join(dir, "sock"), engine: engine, conns: map[net.Conn]bool{}}
	e.host = "unix://" + e.path
	t.Cleanup(func() {
		e.cut()
		e.wg.Wait()
		_ = os.RemoveAll(dir)
	})
	e.mend()
	return e
}

// mend takes connections, for the first time or again.
func (e *engineLine) mend() {
	l, err := net.Listen("unix", e.path)
	if err != nil {
		panic(err) // the folder is the test's own
	}
	e.mu.Lock()
	e.l = l
	e.mu.Unlock()
	e.wg.Go(func() {
		for {
			conn, err := l.Accept()
			if err != nil {
				return
			}
			e.wg.Go(func() { e.pass(conn) })
		}
	})
}

// cut ends all connections, and takes no more.
func (e *engineLine) cut() {
	e.mu.Lock()
	defer e.mu.Unlock()
	_ = e.l.Close()
	for c := range e.conns {
		_ = c.Close()
	}
	clear(e.conns)
}

func (e *engineLine) pass(near net.Conn) {
	far, err := (&net.Dialer{}).DialContext(context.Background(), "unix", e.engine)
	if err != nil {
		_ = near.Close()
		return
	}
	e.mu.Lock()
	e.conns[near], e.conns[far] = true, true
	e.mu.Unlock()
	var wg sync.WaitGroup
	for _, way := range [][2]net.Conn{{near, far}, {far, near}} {
		wg.Go(func() {
			_, err := io.Copy(way[0], way[1])
			if half, ok := way[0].(*net.UnixConn); ok && !errors.Is(err, net.ErrClosed) {
				_ = half.CloseWrite() // an attached box learns by it that its worker is gone
			}
		})
	}
	wg.Wait()
	_ = near.Close()
	_ = far.Close()
	e.mu.Lock()
	defer e.mu.Unlock()
	delete(e.conns, near)
	delete(e.conns, far)
}
