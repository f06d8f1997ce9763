package docker

import (
	"context"
	"errors"
	"strconv"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/containerd/errdefs"
	mobycontainer "github.com/moby/moby/api/types/container"
	"github.com/moby/moby/client"

	"slipway/container"
	"slipway/test/requires"
)

// nested makes so many thousand folders, each in the one before: a thousand by a path, and what there is below them by a
// rename.
func nested(t *testing.T, b container.Sandbox, thousands int) {
	t.Helper()
	exit, err := b.Exec(t.Context(), container.Command{
		Args: []string{"sh", "-ec", `p=$(yes d/ | head -n 1000 | tr -d '\n'); mkdir t; i=0
			while [ $i -lt ` + strconv.Itoa(thousands) + ` ]; do mkdir -p c/$p; mv t c/${p}t; mv c t; i=$((i+1)); done`},
		Timeout: 5 * time.Minute,
	})
	if err != nil || !exit.Success() {
		t.Fatalf("make %d,000 nested folders: got %+v, %v", thousands, exit, err)
	}
}

// deep is how many thousands of nested folders a tree has: more than an engine with 20,000 open files can remove.
func deep() int {
	if requires.IsLong() {
		return 60
	}
	return 25
}

// TestRemoveDeep: a tree that is too deep for the engine goes, while its box lives, by the box: removal waits for it.
func TestRemoveDeep(t *testing.T) {
	e := setup(t)
	for how, remove := range map[string]func(container.Sandbox) error{
		"by name":   func(b container.Sandbox) error { return e.Remove(e.ctx, b.Info().Name) },
		"by handle": func(b container.Sandbox) error { return b.Remove(e.ctx) },
	} {
		t.Run(how, func(t *testing.T) {
			if how == "by name" {
				requires.Long(t)
			}
			b := e.box(t, e.spec())
			nested(t, b, deep())
			volume := e.workspace(t, b.Info().ID)
			begin := time.Now()
			if err := remove(b); err != nil {
				t.Errorf("remove: %v", err)
			}
			t.Logf("%d,000 nested folders: gone after %v", deep(), time.Since(begin).Round(time.Millisecond))
			if e.volumes(t)[volume] {
				t.Errorf("volume %s is left", volume)
			}
		})
	}
}

// lose removes the container of b from outside, by "docker rm -f", and returns the volume, which such a removal leaves.
func (e engine) lose(t *testing.T, b container.Sandbox) (volume string) {
	t.Helper()
	volume = e.workspace(t, b.Info().ID)
	if _, err := e.cli.ContainerRemove(e.ctx, b.Info().ID, client.ContainerRemoveOptions{Force: true}); err != nil && !errdefs.IsNotFound(err) {
		t.Fatal(err)
	}
	if err := e.waitGone(e.ctx, b.Info().ID, time.Minute); err != nil {
		t.Fatal(err)
	}
	if !e.volumes(t)[volume] {
		t.Skip("this engine removes the volume as well")
	}
	return volume
}

// TestLeftovers: what is left of a box that lost its container is on the list as its, and goes by its name or its handle, also
// if it holds a tree too deep for the engine.
func TestLeftovers(t *testing.T) {
	e := setup(t)
	for _, tt := range []struct {
		name   string
		remove func(container.Sandbox) error
		deep   bool
	}{
		{"by handle", func(b container.Sandbox) error { return b.Remove(e.ctx) }, false},
		{"by name", func(b container.Sandbox) error { return e.Remove(e.ctx, b.Info().Name) }, false},
		{"by name, too deep for the engine", func(b container.Sandbox) error { return e.Remove(e.ctx, b.Info().Name) }, true},
	} {
		t.Run(tt.name, func(t *testing.T) {
			spec := e.spec()
			spec.Labels[container.LabelInstance] = spec.Name
			b := e.box(t, spec)
			if tt.deep {
				nested(t, b, deep())
			}
			volume := e.lose(t, b)
			mine := map[string]string{container.LabelInstance: spec.Name}
			left, err := e.List(e.ctx, mine)
			if err != nil || len(left) != 1 || left[0].Name != spec.Name || left[0].State != container.StateRemains ||
				time.Since(left[0].CreatedAt).Abs() > time.Hour || !left[0].Carries(mine) {
				t.Errorf("list: got %+v, %v; want what remains of %s, changed just now", left, err, spec.Name)
			}
			begin := time.Now()
			if err := tt.remove(b); err != nil {
				t.Errorf("remove: %v", err)
			}
			t.Logf("gone after %v", time.Since(begin).Round(time.Millisecond))
			if e.volumes(t)[volume] {
				t.Errorf("volume %s is left", volume)
			}
			if left, err := e.List(e.ctx, mine); err != nil || len(left) != 0 {
				t.Errorf("list after removal: got %+v, %v; want none", left, err)
			}
			if _, err := e.inspect(e.ctx, wipeRequest(supervisorImage{}, volume, "", "", time.Now()).Name); !errdefs.IsNotFound(err) {
				t.Errorf("the wiper: got %v, want it gone", err)
			}
		})
	}
}

// TestWipe: two workers at once empty one volume, whatever the modes of the folders in it; one of them waits for the other.
func TestWipe(t *testing.T) {
	e := setup(t)
	b := e.box(t, e.spec())
	sh(t, b, "mkdir -p a/b/c; echo x > a/b/f; chmod 0 a/b a")
	volume := e.lose(t, b)
	errs := make(chan error)
	for range 2 {
		go func() { errs <- e.left.wipe(e.ctx, volume) }()
	}
	for range 2 {
		if err := <-errs; err != nil {
			t.Errorf("wipe: %v", err)
		}
	}
	probe, err := e.spec().WithDefaults()
	if err != nil {
		t.Fatal(err)
	}
	req, err := createRequest(probe, engineFacts{})
	if err != nil {
		t.Fatal(err)
	}
	what, err := e.left.delivery.image(e.ctx)
	if err != nil {
		t.Fatal(err)
	}
	req.Config.Cmd, req.Config.Entrypoint = []string{`[ -z "$(ls -A /left)" ]`}, []string{"sh", "-c"}
	req.HostConfig.Mounts, req.HostConfig.Tmpfs = wipeRequest(what, volume, "", "", time.Now()).HostConfig.Mounts, nil
	res, err := e.cli.ContainerCreate(e.ctx, req)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = e.destroy(context.WithoutCancel(e.ctx), res.ID) }()
	ended, stop := e.await(e.ctx, res.ID, mobycontainer.WaitConditionNextExit)
	defer stop()
	if _, err := e.cli.ContainerStart(e.ctx, res.ID, client.ContainerStartOptions{}); err != nil {
		t.Fatal(err)
	}
	if end := <-ended; end.err != nil || end.code != 0 {
		t.Errorf("look for what is left in the volume: got %+v, want none", end)
	}
}

// TestLeftoverOfARunningName: a volume of an earlier box of a name is not on the list while a box of that name runs, since who
// removes it by that name would end the box. It goes with the box.
func TestLeftoverOfARunningName(t *testing.T) {
	e := setup(t)
	spec := e.spec()
	volume := e.lose(t, e.box(t, spec))
	b := e.box(t, spec)
	left, err := e.List(e.ctx, map[string]string{container.LabelBox: spec.Name})
	if err != nil || len(left) != 1 || left[0].State != container.StateRunning {
		t.Errorf("list: got %+v, %v; want the running box alone", left, err)
	}
	if err := b.Remove(e.ctx); err != nil {
		t.Error(err)
	}
	if e.volumes(t)[volume] {
		t.Errorf("volume %s of the earlier box is left", volume)
	}
}

// TestRemoveFrozen: a box that does not work is not waited for as one that wipes is.
func TestRemoveFrozen(t *testing.T) {
	e := setup(t)
	b := e.box(t, e.spec())
	if _, err := e.cli.ContainerPause(e.ctx, b.Info().ID, client.ContainerPauseOptions{}); err != nil {
		t.Skipf("this engine can't freeze a container: %v", err)
	}
	begin := time.Now()
	if err := b.Remove(e.ctx); err != nil {
		t.Error(err)
	}
	if took := time.Since(begin); took > 3*leaveTime {
		t.Errorf("took %v, want about %v", took, leaveTime)
	}
}

// A box that was told to end is waited for as long as it works, and there is time to remove it by force.
func TestAwaitWork(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		name  string
		wipes time.Duration // how long the box works
		limit time.Duration // of the caller; 0: none
		stuck bool          // it does not end afterwards
		want  time.Duration
		stays bool
	}{
		{"a short wipe", 4 * time.Second, time.Minute, false, 4 * time.Second, false},
		{"a long wipe", 95 * time.Second, 0, false, 95 * time.Second, false},
		{"a wipe that its caller can't wait for", time.Hour, time.Minute, false, 40 * time.Second, true},
		{"stuck from the first", 0, 0, true, 10 * time.Second, true},
		{"stuck later", 45 * time.Second, 0, true, 60 * time.Second, true},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				ctx, cancel := context.WithCancel(t.Context())
				if tt.limit > 0 {
					ctx, cancel = context.WithTimeout(t.Context(), tt.limit)
				}
				defer cancel()
				begin := time.Now()
				gone := func(_ context.Context, limit time.Duration) error {
					left := tt.wipes - time.Since(begin)
					if tt.stuck || left > limit {
						<-time.After(limit)
						return errors.New("still there")
					}
					<-time.After(left)
					return nil
				}
				worked := func(context.Context) time.Duration { return min(time.Since(begin), tt.wipes) / 30 }
				err := awaitWork(ctx, gone, worked)
				if took := time.Since(begin); (err != nil) != tt.stays || took != tt.want {
					t.Errorf("got %v after %v, want it to stay: %t, after %v", err, took, tt.stays, tt.want)
				}
			})
		})
	}
}

// TestWipeRequest: the wiper reaches the volume and nothing else, and a reaper can find it.
func TestWipeRequest(t *testing.T) {
	now := time.Unix(1_000_000, 0)
	volume := strings.Repeat("0123456789abcdef", 4)
	req := wipeRequest(supervisorImage{tag: "slipway-supervisor:x"}, volume, "runsc", "/jobs", now)
	h := req.HostConfig
	if len(h.Mounts) != 1 || h.Mounts[0].Source != volume || h.NetworkMode != "none" || !req.Config.NetworkDisabled || !h.ReadonlyRootfs ||
		!h.AutoRemove || h.Privileged || len(h.Binds) != 0 || strings.Join(h.CapDrop, ",") != "ALL" || strings.Join(h.CapAdd, ",") != "DAC_OVERRIDE,FOWNER" ||
		h.Runtime != "runsc" || h.CgroupParent != "/jobs" || req.Config.Image != "slipway-supervisor:x" {
		t.Errorf("got %+v with %+v", req.Config, h)
	}
	labels := req.Config.Labels
	if expires, err := strconv.ParseInt(labels[container.LabelExpires], 10, 64); err != nil || !time.Unix(expires, 0).After(now.Add(10*time.Minute)) ||
		labels[container.LabelProduct] != container.Product || labels[container.LabelBox] != req.Name {
		t.Errorf("labels: got %v", labels)
	}
	if name := (container.Spec{Name: req.Name}); name.Validate() != nil {
		t.Errorf("name: got %s, want one that a box can have: %v", req.Name, name.Validate())
	}
}

// TestShorten: an engine's error about a deep tree has its path, which is longer than any log should hold. Its type stays.
func TestShorten(t *testing.T) {
	long := errdefs.ErrNotFound.WithMessage(strings.Repeat("/d", 60_000))
	if got := shorten(long); len(got.Error()) > 400 || !errdefs.IsNotFound(got) {
		t.Errorf("got %d characters, not found: %t; want some 300, and the type", len(got.Error()), errdefs.IsNotFound(got))
	}
	short := errors.New("short")
	if got := shorten(short); !errors.Is(got, short) || got.Error() != "short" || shorten(nil) != nil {
		t.Errorf("got %v and %v, want them as they are", got, shorten(nil))
	}
}
