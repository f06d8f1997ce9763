package docker

import (
	"context"
	"sync"
	"testing"
	"time"

	"github.com/containerd/errdefs"
	mobycontainer "github.com/moby/moby/api/types/container"
	"github.com/moby/moby/api/types/mount"
	"github.com/moby/moby/client"

	"slipway/container/supervisor"
	testimage "slipway/test/image"
)

// fresh is an engine without a supervisor's volume, as far as the test's own
// provider can see. what tells its names.
func fresh(t *testing.T) (e engine, what supervisorImage) {
	t.Helper()
	e = setup(t)
	e.delivery.volumePrefix = name() + "-"
	eng, err := e.Engine(e.ctx)
	if err != nil {
		t.Fatal(err)
	}
	digest, err := supervisor.Digest(eng.Arch)
	if err != nil {
		t.Fatal(err)
	}
	what = supervisorImage{arch: eng.Arch, volume: e.delivery.volumePrefix + digest[:12], tag: fillImage + ":" + digest[:12]}
	t.Cleanup(func() {
		ctx := context.WithoutCancel(e.ctx)
		_, err := e.cli.VolumeRemove(ctx, what.volume, client.VolumeRemoveOptions{})
		if err != nil && !errdefs.IsNotFound(err) {
			t.Error(err)
		}
		if _, err := e.inspect(ctx, what.volume); !errdefs.IsNotFound(err) {
			t.Errorf("the filler is left: %v", err)
		}
	})
	return e, what
}

// works fails t unless a box of e runs.
func (e engine) works(t *testing.T) {
	t.Helper()
	b, err := e.Create(e.ctx, e.spec())
	if err != nil {
		t.Fatal(err)
	}
	if err := b.Start(e.ctx); err != nil {
		t.Errorf("start: %v", err)
	} else if exit, _ := sh(t, b, "true"); !exit.Success() {
		t.Errorf("got %+v", exit)
	}
	if err := b.Remove(e.ctx); err != nil {
		t.Error(err)
	}
}

// inVolume runs a script in a throw-away container that has the volume at /v.
func (e engine) inVolume(t *testing.T, volume, script string) {
	t.Helper()
	id := e.inContainer(t, script, mount.Mount{
		Type: mount.TypeVolume, Source: volume, Target: "/v", VolumeOptions: &mount.VolumeOptions{NoCopy: true},
	})
	if err := e.destroy(e.ctx, id); err != nil { // else the volume is in use
		t.Fatal(err)
	}
}

// inContainer runs a script as root in a container that is no box, and returns its id. The container goes with the test.
func (e engine) inContainer(t *testing.T, script string, mounts ...mount.Mount) (id string) {
	t.Helper()
	res, err := e.cli.ContainerCreate(e.ctx, client.ContainerCreateOptions{
		Config:     &mobycontainer.Config{Image: testimage.Shell, Entrypoint: []string{"sh", "-ec", script}, NetworkDisabled: true},
		HostConfig: &mobycontainer.HostConfig{Mounts: mounts},
	})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = e.destroy(context.WithoutCancel(e.ctx), res.ID) })
	wait := e.cli.ContainerWait(e.ctx, res.ID, client.ContainerWaitOptions{Condition: mobycontainer.WaitConditionNextExit})
	if _, err := e.cli.ContainerStart(e.ctx, res.ID, client.ContainerStartOptions{}); err != nil {
		t.Fatal(err)
	}
	select {
	case r := <-wait.Result:
		if r.StatusCode != 0 {
			t.Fatalf("%q: exit %d", script, r.StatusCode)
		}
	case err := <-wait.Error:
		t.Fatal(err)
	}
	return res.ID
}

func TestDeliver(t *testing.T) {
	tests := []struct {
		name   string
		before func(t *testing.T, e engine, what supervisorImage)
	}{
		{"first box of an engine", func(*testing.T, engine, supervisorImage) {}},
		{"an empty volume", func(t *testing.T, e engine, what supervisorImage) { e.inVolume(t, what.volume, "true") }},
		{"half filled", func(t *testing.T, e engine, what supervisorImage) {
			e.inVolume(t, what.volume, "head -c 4096 /bin/busybox >/v/box; chmod 555 /v/box")
		}},
		{"truncated", func(t *testing.T, e engine, what supervisorImage) {
			e.works(t)
			e.inVolume(t, what.volume, "head -c 1000000 /v/box >/v/b; chmod 555 /v/b; mv /v/b /v/box")
		}},
		{"pruned under a running worker", func(t *testing.T, e engine, what supervisorImage) {
			e.works(t)
			if _, err := e.cli.VolumeRemove(e.ctx, what.volume, client.VolumeRemoveOptions{}); err != nil {
				t.Fatal(err)
			}
		}},
		{"a filler whose worker died", func(t *testing.T, e engine, what supervisorImage) {
			if _, err := e.delivery.createFiller(e.ctx, what); err != nil {
				t.Fatal(err)
			}
			if err := e.dropStaleFillers(t, what); err != nil {
				t.Fatal(err)
			}
		}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			e, what := fresh(t)
			tt.before(t, e, what)
			begin := time.Now()
			e.works(t)
			t.Logf("a box's life took %v", time.Since(begin).Round(time.Millisecond))
			begin = time.Now()
			e.works(t)
			t.Logf("the next one's %v", time.Since(begin).Round(time.Millisecond))
		})
	}
}

// dropStaleFillers does what another worker does a minute later.
func (e engine) dropStaleFillers(t *testing.T, what supervisorImage) error {
	t.Helper()
	c, err := e.inspect(e.ctx, what.volume)
	if err != nil {
		return err
	}
	if err := e.delivery.dropStaleFiller(e.ctx, what.volume); err != nil {
		return err
	}
	if _, err := e.inspect(e.ctx, what.volume); err != nil {
		t.Errorf("a filler that is not stale was removed: %v", err)
	}
	return e.destroy(e.ctx, c.ID)
}

// TestDeliverRace: workers that know nothing of each other fill one volume.
func TestDeliverRace(t *testing.T) {
	e, what := fresh(t)
	var wg sync.WaitGroup
	for range 6 {
		p, err := New(Config{})
		if err != nil {
			t.Fatal(err)
		}
		p.delivery.volumePrefix = e.delivery.volumePrefix
		wg.Go(func() {
			defer func() { _ = p.Close() }()
			engine{p, e.ctx, e.image}.works(t)
		})
	}
	wg.Wait()
	if _, err := e.cli.ImageInspect(e.ctx, what.tag); !errdefs.IsNotFound(err) {
		t.Errorf("the image that fills the volume is left: %v", err)
	}
}

func TestPruneVolumes(t *testing.T) {
	e, what := fresh(t)
	e.works(t)
	old := what
	old.volume = e.delivery.volumePrefix + "000000000000"
	if err := e.delivery.fill(e.ctx, old); err != nil {
		t.Fatal(err)
	}
	got, err := e.PruneVolumes(e.ctx)
	if err != nil || len(got) != 1 || got[0] != old.volume {
		t.Errorf("got %v, %v, want %s alone", got, err, old.volume)
	}
	e.works(t)
	if got, err := e.PruneVolumes(e.ctx); err != nil || len(got) != 0 {
		t.Errorf("again: got %v, %v, want nothing", got, err)
	}
}
