package docker

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	mobycontainer "github.com/moby/moby/api/types/container"
	"github.com/moby/moby/client"

	"slipway/container"
	"slipway/test/eventually"
)

// try runs a script as its box's own user.
func try(t *testing.T, b container.Sandbox, script string, change ...func(*container.Command)) (container.Exit, error) {
	t.Helper()
	cmd := container.Command{Args: []string{"sh", "-c", script}, Timeout: time.Minute}
	for _, c := range change {
		c(&cmd)
	}
	return b.Exec(t.Context(), cmd)
}

// What a job does to its memory is its own failure, at the first time, and process 1 survives it: the steps that follow run,
// and fail in the same way.
func TestMemoryExhausted(t *testing.T) {
	e := setup(t)
	spec := e.spec()
	spec.Resources = container.Resources{CPUs: 1, Memory: 64 << 20, Tmp: 64 << 20, Shm: 64 << 20}
	b := e.box(t, spec)
	exit, err := try(t, b, "dd if=/dev/zero of=/dev/shm/f bs=1M; dd if=/dev/zero of=/tmp/f bs=1M; x=$(head -c 100000000 /dev/zero | tr '\\0' x)")
	if err != nil || !exit.OOM || exit.Success() {
		t.Fatalf("got %+v, %v; want OOM and no success", exit, err)
	}
	for i := range 25 {
		_, err := try(t, b, "x=$(head -c 30000000 /dev/zero | tr '\\0' x)")
		if errors.Is(err, container.ErrBoxOOM) { // the kernel's choice is its own; the verdict is right all the same
			t.Logf("process 1 was killed at step %d: %v", i, err)
			return
		}
		if err != nil {
			t.Fatalf("step %d: got %v, want an exit, or ErrBoxOOM", i, err)
		}
	}
	if exit, err := try(t, b, "rm /tmp/f /dev/shm/f"); err != nil {
		t.Errorf("make room: got %+v, %v", exit, err)
	}
}

// A process 1 that the kernel killed for memory leaves no word: the engine says what ended it.
func TestSupervisorKilledForMemory(t *testing.T) {
	e := setup(t)
	b := e.box(t, e.spec())
	id := b.Info().ID
	if _, err := try(t, b, "echo x >/dev/shm/f"); err != nil {
		t.Fatal(err)
	}
	// Far below what process 1 itself needs.
	if _, err := e.cli.ContainerUpdate(e.ctx, id, client.ContainerUpdateOptions{Resources: &mobycontainer.Resources{Memory: 6 << 20, MemorySwap: 6 << 20}}); err != nil {
		t.Skipf("needs an engine that lowers the memory of a running box: %v", err)
	}
	for range 50 {
		_, err := try(t, b, "x=$(head -c 30000000 /dev/zero | tr '\\0' x)")
		if err == nil {
			continue
		}
		if !errors.Is(err, container.ErrBoxLost) || !errors.Is(err, container.ErrBoxOOM) {
			t.Fatalf("got %v, want ErrBoxLost with ErrBoxOOM", err)
		}
		return
	}
	t.Skip("process 1 has survived it all")
}

// A box that somebody has ended is nobody's own fault, whatever ran in it.
func TestBoxKilledFromOutside(t *testing.T) {
	e := setup(t)
	for name, end := range map[string]func(id string) error{
		"kill": func(id string) error {
			_, err := e.cli.ContainerKill(e.ctx, id, client.ContainerKillOptions{Signal: "KILL"})
			return err
		},
		"stop": func(id string) error {
			_, err := e.cli.ContainerStop(e.ctx, id, client.ContainerStopOptions{})
			return err
		},
	} {
		t.Run(name, func(t *testing.T) {
			b := e.box(t, rootSpec(e))
			if exit, err := try(t, b, "x=$(head -c 300000000 /dev/zero | tr '\\0' x)"); err != nil || !exit.OOM {
				t.Fatalf("got %+v, %v; want OOM", exit, err)
			}
			if err := end(b.Info().ID); err != nil {
				t.Fatal(err)
			}
			_, err := try(t, b, "sleep 60")
			if !errors.Is(err, container.ErrBoxLost) || errors.Is(err, container.ErrBoxOOM) || errors.Is(err, container.ErrBoxEnded) {
				t.Errorf("got %v, want ErrBoxLost alone", err)
			}
		})
	}
}

func rootSpec(e engine) container.Spec {
	spec := e.spec()
	spec.Relaxed = []container.Relaxation{container.RelaxRootSteps}
	spec.Resources = container.Resources{Memory: 64 << 20}
	return spec
}

// A root command that ends its supervisor is told as what it is. The box goes on unless it was process 1.
func TestRootEndsItsSupervisor(t *testing.T) {
	e := setup(t)
	for _, sig := range []string{"KILL", "TERM", "SEGV", "QUIT"} {
		b := e.box(t, rootSpec(e))
		exit, err := try(t, b, "kill -"+sig+" $PPID; sleep 1; exit 0")
		survives := sig == "QUIT" // which the supervisor is deaf to
		if err != nil || exit.Unwatched == survives || exit.Success() != survives {
			t.Errorf("%s to the step process: got %+v, %v; want Unwatched %t", sig, exit, err, !survives)
		}
		if exit, err := try(t, b, "exit 3"); err != nil || exit.Code != 3 || exit.Unwatched {
			t.Errorf("the next command after %s: got %+v, %v; want code 3", sig, exit, err)
		}
	}
	b := e.box(t, rootSpec(e))
	if exit, err := try(t, b, "kill -KILL -1"); err != nil || exit.Success() || !exit.Unwatched {
		t.Errorf("KILL to all: got %+v, %v; want Unwatched", exit, err)
	}
	if exit, err := try(t, b, "exit 3"); err != nil || exit.Code != 3 {
		t.Errorf("the next command after KILL to all: got %+v, %v; want code 3", exit, err)
	}
	for _, sig := range []string{"TERM", "SEGV"} {
		b := e.box(t, rootSpec(e))
		_, err := try(t, b, "kill -"+sig+" 1; sleep 60")
		if !errors.Is(err, container.ErrBoxLost) || !errors.Is(err, container.ErrBoxEnded) {
			t.Errorf("%s to process 1: got %v, want ErrBoxLost with ErrBoxEnded", sig, err)
		}
	}
}

// A root command that stops the process with its clock is not waited for.
func TestRootStopsItsSupervisor(t *testing.T) {
	e := setup(t)
	b := e.box(t, rootSpec(e))
	begin := time.Now()
	_, err := try(t, b, "kill -STOP $PPID; sleep 600", func(c *container.Command) { c.Timeout = time.Second })
	if !errors.Is(err, container.ErrStuck) {
		t.Errorf("got %v after %v, want ErrStuck", err, time.Since(begin))
	}
}

// forkBomb ignores TERM, begins a session with each of its processes, and is never done.
const forkBomb = `trap '' TERM
echo 'BEGIN { while (1) system("setsid awk -f /tmp/bomb &") }' >/tmp/bomb
exec awk -f /tmp/bomb`

// A fork bomb ends soon after its time, and the box serves the next command.
func TestForkBomb(t *testing.T) {
	e := setup(t)
	spec := e.spec()
	spec.Resources = container.Resources{CPUs: 1, Pids: 256}
	b := e.box(t, spec)
	eventually.Doubling(t, "a fork bomb has ended", func(limit time.Duration) bool {
		begin := time.Now()
		exit, err := try(t, b, forkBomb, func(c *container.Command) { c.Timeout, c.Grace = 3*time.Second, time.Second })
		late := time.Since(begin) - 4*time.Second
		if err != nil || !exit.TimedOut || !exit.Pids {
			t.Fatalf("got %+v, %v; want TimedOut and Pids", exit, err)
		}
		t.Logf("%v after its timeout and grace", late)
		return late < limit
	})
	if exit, err := try(t, b, "exit 3"); err != nil || exit.Code != 3 || exit.Pids {
		t.Errorf("the next command: got %+v, %v; want code 3", exit, err)
	}
}

// A command that can't fork says why.
func TestLimitOfProcesses(t *testing.T) {
	e := setup(t)
	spec := e.spec()
	spec.Resources = container.Resources{Pids: 40}
	b := e.box(t, spec)
	if exit, err := try(t, b, "for i in $(seq 60); do sleep 60 & done"); err != nil || exit.Code == 0 || !exit.Pids {
		t.Errorf("got %+v, %v; want a failure with Pids", exit, err)
	}
	if exit, err := try(t, b, "exit 3"); err != nil || exit.Pids {
		t.Errorf("the next command: got %+v, %v; want none", exit, err)
	}
}

// A command that can't start names what is wrong.
func TestWhyNotStarted(t *testing.T) {
	e := setup(t)
	b := e.box(t, e.spec())
	if _, err := try(t, b, "printf '#!/usr/bin/python3\\n' >script; chmod +x script; mkdir open closed; chmod 000 closed"); err != nil {
		t.Fatal(err)
	}
	for _, tt := range []struct {
		args []string
		dir  string
		code int
		want string
	}{
		{[]string{"/bin/zsh", "-c", "true"}, "", 127, "/bin/zsh: not found"},
		{[]string{"./script"}, "", 127, `its interpreter was not found: "/usr/bin/python3"`},
		{[]string{"/bin/sh", "-c", "true"}, "closed", 126, "working folder /workspace/closed: permission denied"},
		{[]string{"/bin/sh", "-c", "true"}, "none", 126, "working folder /workspace/none: no such file"},
	} {
		exit, err := b.Exec(e.ctx, container.Command{Args: tt.args, Dir: tt.dir})
		if err != nil || exit.Code != tt.code || !strings.Contains(exit.Error, tt.want) {
			t.Errorf("%q in %q: got %+v, %v; want code %d, %q", tt.args, tt.dir, exit, err, tt.code, tt.want)
		}
	}
}

// The stream of events ends with its engine, which then proves nothing, and is made again for the next box.
func TestWitnessListensAgain(t *testing.T) {
	e := setup(t)
	first := e.box(t, rootSpec(e))
	e.witness.stop()
	if got := e.witness.testify(first.Info().ID); got.whole {
		t.Errorf("after the end of the stream: got %+v, want it not whole", got)
	}
	second := e.box(t, rootSpec(e))
	if _, err := try(t, second, "kill -TERM 1; sleep 60"); !errors.Is(err, container.ErrBoxEnded) {
		t.Errorf("a box after it: got %v, want ErrBoxEnded", err)
	}
	ctx, cancel := context.WithCancel(e.ctx)
	cancel()
	e.witness.watch(ctx, "none")
	e.witness.forget("none")
}
