package e2e

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"slipway/job"
	"slipway/test/eventually"
	testimage "slipway/test/image"
	"slipway/test/requires"
)

const (
	natsImage    = "nats:2.15.3"
	gatewayImage = "versity/versitygw:v1.8.0"
	shellImage   = "busybox:1.36"
	goImage      = "golang:1.26"

	accessKey = "slipway"
	secretKey = "slipway-e2e-only"
	bucket    = "slipway"
)

// bundle is one installation: a queue, a store, and as many workers as a test starts.
type bundle struct {
	nats     string // id of its container
	natsURL  string
	endpoint string
	engine   string   // DOCKER_HOST of the workers; empty: the caller's
	bin      string   // folder of the built binaries
	workers  []string // names of those that were started: by them the test knows its own boxes
	root     string   // of the repository
}

// setup starts NATS and the gateway in containers of the images that docker-compose.yml names.
func setup(t *testing.T, images ...string) *bundle {
	t.Helper()
	requires.E2E(t)
	root, err := filepath.Abs("../..")
	if err != nil {
		t.Fatal(err)
	}
	b := &bundle{root: root, bin: filepath.Join(root, "bin")}
	for _, img := range append(images, natsImage, gatewayImage) {
		testimage.Require(t, img)
	}
	// Fixed ports: they survive a restart of the container.
	natsPort, gatewayPort := freePort(t), freePort(t)
	b.nats = start(t, natsImage, natsPort+":4222", nil, "-js", "-sd", "/data")
	b.natsURL = "nats://127.0.0.1:" + natsPort
	start(t, gatewayImage, gatewayPort+":7070", []string{"ROOT_ACCESS_KEY=" + accessKey, "ROOT_SECRET_KEY=" + secretKey},
		"--port", ":7070", "posix", "/data")
	b.endpoint = "http://127.0.0.1:" + gatewayPort
	t.Cleanup(func() { b.assertNothingLeft(t) })
	return b
}

// start runs a container until the end of the test, waits until its port answers, and returns its id. ports is host:container.
func start(t *testing.T, img, ports string, env []string, args ...string) string {
	t.Helper()
	run := []string{"run", "--detach", "--publish", "127.0.0.1:" + ports}
	for _, e := range env {
		run = append(run, "--env", e)
	}
	out, err := exec.CommandContext(t.Context(), "docker", append(append(run, img), args...)...).Output()
	id := strings.TrimSpace(string(out))
	if id != "" { // also of a container that was made and does not start
		t.Cleanup(func() {
			if out, err := exec.Command("docker", "rm", "--force", "--volumes", id).CombinedOutput(); err != nil {
				t.Errorf("remove the container of %s: %v\n%s", img, err, out)
			}
		})
	}
	if err != nil {
		t.Fatalf("start %s: %v", img, err)
	}
	port, _, _ := strings.Cut(ports, ":")
	eventually.True(t, 30*time.Second, img+" answers on port "+port, func() bool { return answers("127.0.0.1:" + port) })
	return id
}

// answers tells whether a server says something at addr: the engine's proxy takes connections before it is up.
func answers(addr string) bool {
	conn, err := net.DialTimeout("tcp", addr, time.Second)
	if err != nil {
		return false
	}
	defer conn.Close()
	_ = conn.SetDeadline(time.Now().Add(time.Second))
	if _, err := io.WriteString(conn, "GET / HTTP/1.0\r\n\r\n"); err != nil { // a NATS server speaks first, whatever it hears
		return false
	}
	_, err = conn.Read(make([]byte, 1))
	return err == nil
}

func freePort(t *testing.T) string {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	_, port, _ := net.SplitHostPort(l.Addr().String())
	return port
}

// env is the environment of every program that a test starts: nothing of the caller's but PATH and HOME.
func (b *bundle) env() []string {
	return []string{
		"PATH=" + os.Getenv("PATH"), "HOME=" + os.Getenv("HOME"), "DOCKER_HOST=" + cmp.Or(b.engine, os.Getenv("DOCKER_HOST")),
		"SLIPWAY_NATS_URL=" + b.natsURL,
		"SLIPWAY_S3_ENDPOINT=" + b.endpoint, "SLIPWAY_S3_BUCKET=" + bucket, "SLIPWAY_S3_CREATE_BUCKET=true",
		"SLIPWAY_S3_ACCESS_KEY=" + accessKey, "SLIPWAY_S3_SECRET_KEY=" + secretKey,
	}
}

// worker is a running bin/worker.
type worker struct {
	t       *testing.T
	name    string
	cmd     *exec.Cmd
	log     *eventually.Buffer
	metrics string // base URL of its HTTP server
	ended   chan struct{}
}

// startWorker starts `worker serve` and waits until it is ready.
func (b *bundle) startWorker(t *testing.T, name string, args ...string) *worker {
	t.Helper()
	w := b.launch(t, name, args...)
	eventually.True(t, 60*time.Second, "worker "+w.name+" is ready", func() bool { return w.ready() || w.hasEnded() })
	if w.hasEnded() {
		t.Fatalf("worker %s ended at start:\n%s", w.name, w.log)
	}
	return w
}

// launch starts `worker serve`.
func (b *bundle) launch(t *testing.T, name string, args ...string) *worker {
	t.Helper()
	addr := "127.0.0.1:" + freePort(t)
	name += "-" + b.natsURL[strings.LastIndex(b.natsURL, ":")+1:] // other tests may run on the same engine
	b.workers = append(b.workers, name)
	w := &worker{t: t, name: name, log: &eventually.Buffer{}, metrics: "http://" + addr, ended: make(chan struct{})}
	w.cmd = exec.Command(filepath.Join(b.bin, "worker"), append([]string{"serve", "--name", name, "--metrics-addr", addr}, args...)...)
	w.cmd.Env = b.env()
	w.cmd.Stdout, w.cmd.Stderr = w.log, w.log
	if err := w.cmd.Start(); err != nil {
		t.Fatal(err)
	}
	go func() { _ = w.cmd.Wait(); close(w.ended) }()
	t.Cleanup(w.stop)
	return w
}

func (w *worker) ready() bool {
	res, err := http.Get(w.metrics + "/readyz")
	if err != nil {
		return false
	}
	defer res.Body.Close()
	return res.StatusCode == http.StatusOK
}

func (w *worker) hasEnded() bool {
	select {
	case <-w.ended:
		return true
	default:
		return false
	}
}

// scrape returns the worker's metrics in the text format.
func (w *worker) scrape() string {
	w.t.Helper()
	res, err := http.Get(w.metrics + "/metrics")
	if err != nil {
		w.t.Fatal(err)
	}
	defer res.Body.Close()
	body, err := io.ReadAll(res.Body)
	if err != nil {
		w.t.Fatal(err)
	}
	return string(body)
}

// hang is when a program counts as hung. Its job may compile the standard library in a box, on a machine that others use:
// five minutes at a load of 30 on two cores.
const hang = 15 * time.Minute

// stop drains the worker and waits for its end.
func (w *worker) stop() {
	if w.hasEnded() {
		return
	}
	_ = w.cmd.Process.Signal(syscall.SIGTERM)
	select {
	case <-w.ended:
	case <-time.After(hang):
		w.t.Errorf("worker did not drain within %s; log:\n%s", hang, w.log)
		w.kill()
	}
	if w.t.Failed() {
		w.t.Logf("worker log:\n%s", w.log)
	}
}

// kill is kill -9.
func (w *worker) kill() {
	_ = w.cmd.Process.Kill()
	<-w.ended
}

// submit runs bin/submit and returns its stdout, its stderr and its exit code.
func (b *bundle) submit(t *testing.T, stdin string, args ...string) (stdout, stderr string, code int) {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), hang)
	defer cancel()
	cmd := exec.CommandContext(ctx, filepath.Join(b.bin, "submit"), args...)
	cmd.Env = b.env()
	cmd.Stdin = strings.NewReader(stdin)
	var out, errOut bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &errOut
	err := cmd.Run()
	var exit *exec.ExitError
	if err != nil && !errors.As(err, &exit) {
		t.Fatalf("submit %v: %v\n%s", args, err, errOut.String())
	}
	return out.String(), errOut.String(), cmd.ProcessState.ExitCode()
}

// create submits a job without waiting and returns its id.
func (b *bundle) create(t *testing.T, spec string) job.ID {
	t.Helper()
	out, errOut, code := b.submit(t, spec, "create", "-")
	id, err := job.ParseID(strings.TrimSpace(out))
	if code != 0 || err != nil {
		t.Fatalf("create: code %d, id %v\n%s%s", code, err, out, errOut)
	}
	return id
}

// result waits for the job's result.
func (b *bundle) result(t *testing.T, id job.ID) *job.Result {
	t.Helper()
	out, errOut, _ := b.submit(t, "", "result", "--wait", "--output", "json", string(id))
	var r job.Result
	if err := json.Unmarshal([]byte(out), &r); err != nil {
		t.Fatalf("result of %s: %v\n%s\n%s", id, err, out, errOut)
	}
	return &r
}

// waitOutput waits until the job's log contains text.
func (b *bundle) waitOutput(t *testing.T, id job.ID, text string) {
	t.Helper()
	eventually.True(t, time.Minute, fmt.Sprintf("job %s prints %q", id, text), func() bool {
		out, _, _ := b.submit(t, "", "logs", string(id))
		return strings.Contains(out, text)
	})
}

// boxes lists the containers of this bundle's workers.
func (b *bundle) boxes(t *testing.T) []string {
	t.Helper()
	var ids []string
	for _, name := range b.workers {
		ids = append(ids, dockerLines(t, "ps", "-aq", "--filter", "label=io.slipway.worker="+name)...)
	}
	return ids
}

func dockerLines(t *testing.T, args ...string) []string {
	t.Helper()
	out, err := exec.Command("docker", args...).Output()
	if err != nil {
		t.Fatalf("docker %v: %v", args, err)
	}
	return strings.Fields(string(out))
}

func (b *bundle) assertNothingLeft(t *testing.T) {
	t.Helper()
	eventually.True(t, 15*time.Second, "no box is left", func() bool { return len(b.boxes(t)) == 0 })
	for _, kind := range []string{"volume", "network"} {
		for _, name := range b.workers {
			if left := dockerLines(t, kind, "ls", "-q", "--filter", "label=io.slipway.worker="+name); len(left) > 0 {
				t.Errorf("%ss of %s left: %v", kind, name, left)
			}
		}
	}
}
