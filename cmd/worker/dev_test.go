package main

import (
	"context"
	"io"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"slipway/job"
	"slipway/job/natsqueue"
	"slipway/test/children"
	"slipway/test/devprogram"
	"slipway/test/eventually"
)

// devProcess is `worker dev` in a process of its own, so that it gets real signals.
type devProcess struct {
	t       *testing.T
	cmd     *exec.Cmd
	out     *eventually.Buffer
	ended   chan struct{}
	client  *natsqueue.Client
	metrics string
}

func startDev(t *testing.T, softStop string) *devProcess {
	t.Helper()
	return startDevOn(t, t.TempDir(), softStop)
}

func startDevOn(t *testing.T, dir, softStop string) *devProcess {
	t.Helper()
	needLinux(t)
	d := &devProcess{t: t, out: &eventually.Buffer{}, ended: make(chan struct{})}
	d.cmd = exec.Command(os.Args[0], "dev", "--allow-local", "--data", dir, "--slots", "1", "--soft-stop", softStop)
	d.cmd.Env = append(os.Environ(), asWorker+"=1", noEngine, devserverAt(t, devprogram.NATS, devprogram.S3))
	d.cmd.Stdout, d.cmd.Stderr = d.out, d.out
	if err := d.cmd.Start(); err != nil {
		t.Fatal(err)
	}
	go func() { defer close(d.ended); _ = d.cmd.Wait() }()
	t.Cleanup(func() {
		_ = d.cmd.Process.Kill()
		<-d.ended
		if t.Failed() {
			t.Logf("worker dev printed:\n%s", d.out)
		}
	})
	eventually.True(t, 30*time.Second, "worker dev says how to submit", func() bool { return strings.Contains(d.out.String(), "Ctrl-C ends it") })
	url := regexp.MustCompile(`nats://\S+`).FindString(d.out.String())
	d.metrics = regexp.MustCompile(`http://\S+/metrics`).FindString(d.out.String())
	conn, err := natsqueue.Connect(t.Context(), natsqueue.Config{URL: url})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(conn.Close)
	d.client = conn.Client()
	return d
}

func (d *devProcess) start(script string) job.ID {
	d.t.Helper()
	j := &job.Job{ID: job.NewID(), Image: "x", Steps: []job.Step{{Run: script}}}
	if err := d.client.Submit(d.t.Context(), j); err != nil {
		d.t.Fatal(err)
	}
	d.state(j.ID, job.StateRunning)
	// The record says so from the claim on. A worker that is stopped in that moment gives the job back, and has none to wait for.
	eventually.True(d.t, 30*time.Second, "the slot is busy", func() bool {
		_, body := d.read(d.metrics)
		return strings.Contains(body, "slipway_slots_busy 1")
	})
	return j.ID
}

func (d *devProcess) state(id job.ID, want job.State) {
	d.t.Helper()
	eventually.True(d.t, 30*time.Second, "job is "+string(want), func() bool {
		st, err := d.client.Status(d.t.Context(), id)
		return err == nil && st.State == want
	})
}

func (d *devProcess) get(url string) (status int) {
	d.t.Helper()
	status, _ = d.read(url)
	return status
}

func (d *devProcess) read(url string) (status int, body string) {
	d.t.Helper()
	req, err := http.NewRequestWithContext(d.t.Context(), http.MethodGet, url, nil)
	if err != nil {
		d.t.Fatal(err)
	}
	client := http.Client{Timeout: 10 * time.Second}
	defer client.CloseIdleConnections()
	res, err := client.Do(req)
	if err != nil {
		d.t.Fatal(err)
	}
	defer res.Body.Close()
	content, err := io.ReadAll(res.Body)
	if err != nil {
		d.t.Fatal(err)
	}
	return res.StatusCode, string(content)
}

func (d *devProcess) signal() {
	d.t.Helper()
	if err := d.cmd.Process.Signal(syscall.SIGTERM); err != nil {
		d.t.Fatal(err)
	}
}

// TestDev_Drain: one SIGTERM lets the running job finish, and says so.
func TestDev_Drain(t *testing.T) {
	d := startDev(t, "30s")
	dir := t.TempDir()
	if err := os.Chmod(filepath.Dir(dir), 0o711); err != nil { //nolint:gosec // the steps' user has to look into it
		t.Fatal(err)
	}
	end := filepath.Join(dir, "end")
	id := d.start("while [ ! -e " + end + " ]; do sleep 0.1; done")
	ready := strings.Replace(d.metrics, "/metrics", "/readyz", 1)
	if got := d.get(d.metrics); got != http.StatusOK {
		t.Errorf("GET /metrics: %d", got)
	}
	if got := d.get(ready); got != http.StatusOK {
		t.Errorf("GET /readyz while it works: %d, want 200", got)
	}
	d.signal()
	eventually.True(t, 30*time.Second, "it says what it waits for", func() bool { return strings.Contains(d.out.String(), "waiting for 1 running job") })
	result := make(chan *job.Result, 1)
	go func() { // the server goes with its worker: who asks afterwards is late
		ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
		defer cancel()
		r, _ := d.client.Result(ctx, id)
		result <- r
	}()
	if err := os.WriteFile(end, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	if r := <-result; r == nil || r.Outcome != job.Succeeded || r.Attempt != 1 {
		t.Errorf("result: got %+v, want succeeded in attempt 1", r)
	}
	<-d.ended
	if got := d.cmd.ProcessState.ExitCode(); got != 0 {
		t.Errorf("exit code after a drain: got %d, want 0", got)
	}
}

// TestDev_StopAtOnce: a second SIGTERM, later than oneWish after the first, does not wait for the job.
func TestDev_StopAtOnce(t *testing.T) {
	d := startDev(t, "30s")
	d.start("sleep 60")
	begun := time.Now()
	d.signal()
	eventually.True(t, 30*time.Second, "it drains", func() bool { return strings.Contains(d.out.String(), "draining") })
	<-time.After(time.Second) // a process of its own, with a clock of its own
	d.signal()
	d.endsSoon(begun)
}

// TestDev_NoSoftStop: 0 is no time, not the default.
func TestDev_NoSoftStop(t *testing.T) {
	d := startDev(t, "0s")
	d.start("sleep 60")
	begun := time.Now()
	d.signal()
	d.endsSoon(begun)
}

func (d *devProcess) endsSoon(begun time.Time) {
	d.t.Helper()
	<-d.ended
	if took := time.Since(begun); took > 15*time.Second {
		d.t.Errorf("took %v", took)
	}
	if got := d.cmd.ProcessState.ExitCode(); got != 0 {
		d.t.Errorf("exit code: got %d, want 0", got)
	}
}

// TestDev_ServersEnd: a worker whose queue or store died does not wait for it for ever.
func TestDev_ServersEnd(t *testing.T) {
	for _, program := range []string{devprogram.NATS, devprogram.S3} {
		d := startDev(t, "0s")
		killChild(t, d.cmd.Process.Pid, program)
		<-d.ended
		got, out := d.cmd.ProcessState.ExitCode(), d.out.String()
		if got != 3 || !strings.Contains(out, "a development server ended") || !strings.Contains(out, program+": signal: killed") {
			t.Errorf("without %s: exit code %d, want 3 and what happened:\n%s", program, got, out)
		}
	}
}

// killChild kills the child of process parent that runs program.
func killChild(t *testing.T, parent int, program string) {
	t.Helper()
	for _, pid := range children.Of(parent) {
		exe, err := os.Readlink("/proc/" + strconv.Itoa(pid) + "/exe")
		if err != nil || filepath.Base(exe) != program {
			continue
		}
		child, err := os.FindProcess(pid)
		if err == nil {
			err = child.Kill()
		}
		if err != nil {
			t.Fatal(err)
		}
		return
	}
	t.Fatalf("process %d has no child that runs %s", parent, program)
}

// TestDev_KeepsKeys: a program that was told the store's keys goes on with them after a new start on the same folder.
func TestDev_KeepsKeys(t *testing.T) {
	dir := t.TempDir()
	keys := func() string {
		d := startDevOn(t, dir, "0s")
		d.signal()
		<-d.ended
		return regexp.MustCompile(`access key \S+, secret key \S+`).FindString(d.out.String())
	}
	first := keys()
	if again := keys(); first == "" || again != first {
		t.Errorf("at the second start: got %q, want %q", again, first)
	}
	if info, err := os.Stat(keysPath(dir)); err != nil || info.Mode().Perm() != 0o600 {
		t.Errorf("the file of keys: %v, %v, want one that is its owner's alone", info, err)
	}
}

// TestDev_DefaultFolder is where people are told that it is.
func TestDev_DefaultFolder(t *testing.T) {
	t.Setenv("XDG_DATA_HOME", "")
	t.Setenv("HOME", "/home/me")
	told := strings.Replace(defaultData(), "/home/me", "~", 1)
	for _, page := range []string{"../../README.md", "../../test/demo", "testdata/help_dev.golden"} {
		text, err := os.ReadFile(page)
		if err != nil || !strings.Contains(string(text), told) {
			t.Errorf("%s does not name %s, %v", page, told, err)
		}
	}
}
