package docker

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/moby/moby/client"

	"slipway/container"
	testimage "slipway/test/image"
)

// volumes lists what is left of boxes' workspaces.
func (e engine) volumes(t *testing.T) map[string]bool {
	t.Helper()
	res, err := e.cli.VolumeList(e.ctx, client.VolumeListOptions{
		Filters: client.Filters{}.Add("label", container.LabelProduct+"="+container.Product),
	})
	if err != nil {
		t.Fatal(err)
	}
	out := map[string]bool{}
	for _, v := range res.Items {
		out[v.Name] = true
	}
	return out
}

// workspace returns the name of the anonymous volume of a box.
func (e engine) workspace(t *testing.T, id string) string {
	t.Helper()
	c, err := e.inspect(e.ctx, id)
	if err != nil {
		t.Fatal(err)
	}
	for _, m := range c.Mounts {
		if m.Destination == container.DefaultWorkdir {
			return m.Name
		}
	}
	t.Fatalf("box %s has no workspace: %+v", id, c.Mounts)
	return ""
}

// TestManyBoxes: more lives at once than the engine is given, and nothing left of any.
func TestManyBoxes(t *testing.T) {
	e := setup(t)
	count := 100
	if testing.Short() {
		count = 20
	}
	label := map[string]string{container.LabelWorker: name()}
	var mu sync.Mutex
	made := map[string]bool{}
	slots := make(chan struct{}, 8)
	var wg sync.WaitGroup
	begin := time.Now()
	for i := range count {
		slots <- struct{}{}
		wg.Go(func() {
			defer func() { <-slots }()
			spec := e.spec()
			spec.Labels = label
			volume, err := e.live(t, spec, fmt.Sprintf("box %d", i))
			if err != nil {
				t.Errorf("box %d: %v", i, err)
			}
			mu.Lock()
			made[volume] = true
			mu.Unlock()
		})
	}
	wg.Wait()
	t.Logf("%d boxes, 8 at a time: %v each", count, (time.Since(begin) / time.Duration(count)).Round(time.Millisecond))
	left, err := e.List(e.ctx, label)
	if err != nil || len(left) != 0 {
		t.Errorf("left: %v, %v, want none", left, err)
	}
	for v := range e.volumes(t) {
		if made[v] {
			t.Errorf("volume %s is left", v)
		}
	}
}

// live is one box's whole life: three commands of which the last is killed, and removal.
func (e engine) live(t *testing.T, spec container.Spec, say string) (volume string, err error) {
	b, err := e.Create(e.ctx, spec)
	if err != nil {
		return "", err
	}
	defer func() { err = errors.Join(err, b.Remove(e.ctx)) }()
	volume = e.workspace(t, b.Info().ID)
	if err := b.Start(e.ctx); err != nil {
		return volume, err
	}
	for _, script := range []string{"echo " + say, "cat >/dev/null; echo " + say + " >f; cat f"} {
		var out strings.Builder
		exit, err := b.Exec(e.ctx, container.Command{
			Args: []string{"sh", "-c", script}, Stdin: []byte("x"), Output: func(_ container.Stream, p []byte) { out.Write(p) },
		})
		if err != nil || !exit.Success() || out.String() != say+"\n" {
			return volume, fmt.Errorf("%q: got %q, %+v, %w", script, out.String(), exit, err)
		}
	}
	exit, err := b.Exec(e.ctx, container.Command{Args: []string{"sh", "-c", "setsid sleep 99 & sleep 99"}, Timeout: 50 * time.Millisecond})
	if err == nil && !exit.TimedOut {
		err = fmt.Errorf("sleep: got %+v, want timed out", exit)
	}
	return volume, err
}

// TestRemoveOfUnreadOutput: nobody takes what the box prints, and it must go all the same.
func TestRemoveOfUnreadOutput(t *testing.T) {
	e := setup(t)
	for how, remove := range map[string]func(container.Sandbox) error{
		"by name":   func(b container.Sandbox) error { return e.Remove(e.ctx, b.Info().Name) },
		"by handle": func(b container.Sandbox) error { return b.Remove(e.ctx) },
	} {
		t.Run(how, func(t *testing.T) {
			b := e.box(t, e.spec())
			stuck, release, done := make(chan struct{}), make(chan struct{}), make(chan struct{})
			go func() {
				defer close(done)
				var once sync.Once
				_, _ = b.Exec(e.ctx, container.Command{Args: []string{"yes"}, Output: func(container.Stream, []byte) {
					once.Do(func() { close(stuck) })
					<-release
				}})
			}()
			<-stuck
			<-time.After(200 * time.Millisecond) // until every buffer on the way is full
			begin := time.Now()
			removed := make(chan error, 1)
			go func() { removed <- remove(b) }()
			select {
			case err := <-removed:
				if err != nil {
					t.Error(err)
				}
			case <-time.After(15 * time.Second):
				t.Error("removal hangs on unread output")
			}
			t.Logf("removed after %v", time.Since(begin).Round(time.Millisecond))
			close(release)
			<-done
		})
	}
}

// TestRemovalsAtOnce: an engine answers 'in progress' to all but one.
func TestRemovalsAtOnce(t *testing.T) {
	e := setup(t)
	for _, start := range []bool{false, true} {
		b, err := e.Create(e.ctx, e.spec())
		if err != nil {
			t.Fatal(err)
		}
		if start {
			if err := b.Start(e.ctx); err != nil {
				t.Fatal(err)
			}
		}
		var wg sync.WaitGroup
		for range 5 {
			wg.Go(func() {
				if err := e.Remove(e.ctx, b.Info().Name); err != nil {
					t.Error(err)
				}
				if _, err := e.Get(e.ctx, b.Info().Name); !errors.Is(err, container.ErrNotFound) {
					t.Errorf("after a removal: got %v, want ErrNotFound", err)
				}
			})
		}
		wg.Wait()
		if err := b.Remove(e.ctx); err != nil {
			t.Error(err)
		}
	}
}

// TestForeignContainer: a container that is not ours is neither replaced nor removed, whatever its name.
func TestForeignContainer(t *testing.T) {
	e := setup(t)
	spec := e.spec()
	req := fillRequest(supervisorImage{volume: spec.Name, tag: testimage.Shell})
	req.HostConfig.Mounts, req.Config.Labels = nil, nil
	res, err := e.cli.ContainerCreate(e.ctx, req)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = e.destroy(context.WithoutCancel(e.ctx), res.ID) }()
	if _, err := e.Create(e.ctx, spec); !errors.Is(err, container.ErrExists) {
		t.Errorf("create: got %v, want ErrExists", err)
	}
	if err := e.Remove(e.ctx, spec.Name); err == nil {
		t.Error("remove: got nil, want an error")
	}
	if _, err := e.inspect(e.ctx, res.ID); err != nil {
		t.Errorf("it is gone: %v", err)
	}
}

// TestLateStart: a start that was given up may have happened all the same; Remove must see to it.
func TestLateStart(t *testing.T) {
	e := setup(t)
	for _, patience := range []time.Duration{time.Millisecond, 15 * time.Millisecond, 60 * time.Millisecond} {
		b, err := e.Create(e.ctx, e.spec())
		if err != nil {
			t.Fatal(err)
		}
		ctx, cancel := context.WithTimeout(e.ctx, patience)
		err = b.Start(ctx)
		cancel()
		if err != nil && !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("start within %v: got %v, want the deadline", patience, err)
		}
		if err := b.Remove(e.ctx); err != nil {
			t.Error(err)
		}
		if _, err := e.Get(e.ctx, b.Info().Name); !errors.Is(err, container.ErrNotFound) {
			t.Errorf("after removal: got %v, want ErrNotFound", err)
		}
	}
}

const workerEnv = "SLIPWAY_TEST_DOCKER_WORKER"

// TestWorkerKilled: after kill -9 of its worker a box goes by itself, with all it held.
func TestWorkerKilled(t *testing.T) {
	e := setup(t)
	if os.Getenv(workerEnv) != "" {
		b := e.box(t, e.spec())
		_, _ = b.Exec(e.ctx, container.Command{ // until it is killed
			Args:   []string{"sh", "-c", "setsid sleep 600 & echo ready; sleep 600"},
			Output: func(container.Stream, []byte) { fmt.Println("box", b.Info().ID) },
		})
	}
	worker := exec.CommandContext(e.ctx, os.Args[0], "-test.run=^TestWorkerKilled$")
	worker.Env = append(os.Environ(), workerEnv+"=1")
	out, err := worker.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := worker.Start(); err != nil {
		t.Fatal(err)
	}
	id := ""
	for lines := bufio.NewScanner(out); id == "" && lines.Scan(); {
		id, _ = strings.CutPrefix(lines.Text(), "box ")
		if id == lines.Text() {
			id = ""
		}
	}
	if id == "" {
		t.Fatal("the worker made no box")
	}
	volume := e.workspace(t, id)
	begin := time.Now()
	if err := worker.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	_ = worker.Wait() // killed
	if err := e.waitGone(e.ctx, id, 10*time.Second); err != nil {
		t.Fatalf("the box outlives its worker: %v", err)
	}
	t.Logf("gone %d ms after kill -9 of its worker", time.Since(begin).Milliseconds())
	if e.volumes(t)[volume] {
		t.Errorf("volume %s is left", volume)
	}
}
