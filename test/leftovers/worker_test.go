package leftovers

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"go.uber.org/zap"

	"slipway/container"
	"slipway/container/docker"
	"slipway/job"
	"slipway/job/jobtest"
	"slipway/runner"
	"slipway/test/eventually"
	testimage "slipway/test/image"
)

// The settings of the worker that this program is when the first of them is set.
const (
	envName  = "SLIPWAY_LEFTOVERS_WORKER"
	envHost  = "SLIPWAY_LEFTOVERS_HOST"  // of the engine; empty: the usual one
	envJobs  = "SLIPWAY_LEFTOVERS_JOBS"  // how many
	envSteps = "SLIPWAY_LEFTOVERS_STEPS" // what each runs
)

func TestMain(m *testing.M) {
	if os.Getenv(envName) != "" {
		if err := work(); err != nil {
			fmt.Fprintln(os.Stderr, "worker:", err)
			os.Exit(1)
		}
		return
	}
	os.Exit(m.Run())
}

// work runs a worker until SIGTERM.
func work() error {
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	boxes, err := docker.New(docker.Config{Host: os.Getenv(envHost)})
	if err != nil {
		return err
	}
	queue := jobtest.NewQueue(jobtest.Config{})
	jobs, _ := strconv.Atoi(os.Getenv(envJobs))
	for range jobs {
		j := &job.Job{ID: job.NewID(), Image: testimage.Shell, Steps: []job.Step{{Run: os.Getenv(envSteps)}}}
		if err := queue.Submit(ctx, j); err != nil {
			return err
		}
	}
	name := os.Getenv(envName)
	log, err := zap.NewDevelopment()
	if err != nil {
		return err
	}
	w, err := runner.New(runner.Config{
		Name: name, Queue: queue.Consumer(name), Provider: boxes, Slots: 2, SoftStop: -1, Logger: log, Observer: counter{},
	})
	if err != nil {
		return err
	}
	fmt.Println("started")
	return w.Run(ctx)
}

// counter prints what a real worker's metrics count.
type counter struct{ runner.NopObserver }

// PhaseDone tells when a box runs.
func (counter) PhaseDone(phase string, _ time.Duration, ok bool) {
	if phase == "create" && ok {
		fmt.Println("running")
	}
}

func (counter) Leftover()      { fmt.Println("leftover") }
func (counter) Reaped(n int)   { fmt.Println("reaped", n) }
func (counter) Slots(_, b int) { fmt.Println("busy", b) }

// worker is one that runs in another process.
type worker struct {
	cmd *exec.Cmd
	log *eventually.Buffer
}

// begin starts a worker, and returns once it has said so.
func begin(t *testing.T, name, host string, jobs int, steps string) *worker {
	t.Helper()
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	w := &worker{cmd: exec.Command(self), log: &eventually.Buffer{}}
	w.cmd.Env = append(os.Environ(), envName+"="+name, envHost+"="+host, envJobs+"="+strconv.Itoa(jobs), envSteps+"="+steps)
	w.cmd.Stderr = w.log
	out, err := w.cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := w.cmd.Start(); err != nil {
		t.Fatal(err)
	}
	lines := bufio.NewScanner(out)
	if !lines.Scan() || lines.Text() != "started" {
		t.Fatalf("the worker said %q\n%s", lines.Text(), w.log)
	}
	go func() {
		for lines.Scan() {
			fmt.Fprintln(w.log, lines.Text())
		}
	}()
	t.Cleanup(func() {
		w.kill()
		if t.Failed() {
			t.Logf("log of worker %s:\n%.20000s", name, w.log)
		}
	})
	return w
}

// kill is kill -9.
func (w *worker) kill() {
	_ = w.cmd.Process.Signal(syscall.SIGKILL)
	_ = w.cmd.Wait() // more than once is harmless
}

// command is one of the engine's client.
func command(ctx context.Context, host string, args ...string) *exec.Cmd {
	if host != "" {
		args = append([]string{"--host", host}, args...)
	}
	return exec.CommandContext(ctx, "docker", args...)
}

// lines asks the engine at host, empty for the usual one.
func lines(t *testing.T, host string, args ...string) []string {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	out, err := command(ctx, host, args...).Output()
	if err != nil {
		t.Fatalf("docker %v: %v", args, err)
	}
	return strings.Fields(string(out))
}

// things returns the boxes and the volumes of the workers of that name.
func things(t *testing.T, host, name string) (boxes, volumes []string) {
	t.Helper()
	filter := "label=" + container.LabelWorker + "=" + name
	boxes = lines(t, host, "ps", "-aq", "--no-trunc", "--filter", filter)
	volumes = lines(t, host, "volume", "ls", "-q", "--filter", filter)
	// An engine that was killed may list dead containers that it does not have.
	for _, id := range lines(t, host, "ps", "-aq", "--no-trunc", "--filter", filter, "--filter", "status=dead") {
		err := command(context.Background(), host, "inspect", "--type", "container", id).Run() // also at a test's end
		if _, unknown := errors.AsType[*exec.ExitError](err); unknown {
			boxes = slices.DeleteFunc(boxes, func(box string) bool { return box == id })
		}
	}
	return boxes, volumes
}

// nothingLeft waits until nothing of that name's is left, and returns how long that took.
func nothingLeft(t *testing.T, host, name string) time.Duration {
	t.Helper()
	began := time.Now()
	eventually.True(t, 5*time.Minute, "no box and no volume of "+name+" is left", func() bool {
		boxes, volumes := things(t, host, name)
		return len(boxes)+len(volumes) == 0
	})
	return time.Since(began)
}
