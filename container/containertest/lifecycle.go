package containertest

import (
	"context"
	"path"
	"slices"
	"testing"
	"time"

	"slipway/container"
	"slipway/test/eventually"
)

func testLifecycle(t *testing.T, k kit) {
	ctx := t.Context()
	must(t, "check", k.Check(ctx))
	b := k.create(t, k.spec())
	info := b.Info()
	if info.State != container.StateCreated || info.ID == "" || info.Name == "" {
		t.Errorf("created: got %+v, want state created, a name and an id", info)
	}
	_, err := b.Exec(ctx, container.Command{Args: []string{"true"}})
	is(t, "exec before the start", err, container.ErrStopped)
	_, err = b.Files().Stat(ctx, ".")
	is(t, "files before the start", err, container.ErrStopped)
	must(t, "start", b.Start(ctx))
	is(t, "second start", b.Start(ctx), container.ErrStopped)
	info = b.Info()
	if info.State != container.StateRunning || !path.IsAbs(info.Workdir) {
		t.Errorf("started: got %+v, want it running with an absolute workdir", info)
	}
	got, err := k.Get(ctx, info.Name)
	must(t, "get", err)
	if got.ID != info.ID || got.State != container.StateRunning || got.Labels[container.LabelWorker] != "suite" ||
		got.Labels[container.LabelProduct] != container.Product || got.Labels[container.LabelBox] != info.Name || time.Since(got.CreatedAt).Abs() > time.Hour {
		t.Errorf("get: got %+v, want id %s, state running, its labels, made now", got, info.ID)
	}
	if exit, _ := exec(t, b, container.Command{Args: []string{"true"}}); !exit.Success() {
		t.Errorf("true: got %+v, want success", exit)
	}
	select {
	case <-b.Done():
		t.Error("Done is closed while the box runs")
	default:
	}
	must(t, "remove", b.Remove(ctx))
	closes(t, b)
	if s := b.Info().State; s != container.StateExited {
		t.Errorf("removed: got state %s, want exited", s)
	}
	_, err = k.Get(ctx, info.Name)
	is(t, "get after remove", err, container.ErrNotFound)
}

func testCreateTwice(t *testing.T, k kit) {
	ctx, spec := t.Context(), k.spec()
	ghost := k.create(t, spec)
	b := k.create(t, spec)
	if ghost.Info().ID == b.Info().ID {
		t.Error("the ghost was not replaced")
	}
	must(t, "start", b.Start(ctx))
	_, err := k.Create(ctx, spec)
	is(t, "create over a running box", err, container.ErrExists)
	if exit, _ := exec(t, b, container.Command{Args: []string{"true"}}); !exit.Success() {
		t.Errorf("true in the running box: got %+v, want success", exit)
	}
	must(t, "remove", b.Remove(ctx))
	again := k.create(t, spec)
	must(t, "start again", again.Start(ctx))
}

func testRemove(t *testing.T, k kit) {
	ctx := t.Context()
	must(t, "remove what never was", k.Remove(ctx, k.spec().Name))
	created := k.create(t, k.spec())
	must(t, "remove a box that was never started", created.Remove(ctx))
	must(t, "and again", created.Remove(ctx))
	closes(t, created)

	b := k.box(t)
	name := b.Info().Name
	must(t, "remove by name", k.Remove(ctx, name))
	closes(t, b)
	_, err := k.Get(ctx, name)
	is(t, "get", err, container.ErrNotFound)
	must(t, "remove by name again", k.Remove(ctx, name))
	must(t, "remove by handle after by name", b.Remove(ctx))

	b = k.box(t)
	errs := make(chan error)
	for range 4 {
		go func() { errs <- b.Remove(ctx) }()
	}
	for range 4 {
		must(t, "one of four removals at once", <-errs)
	}

	b = k.box(t)
	ended, end := context.WithCancel(ctx)
	end()
	is(t, "remove with a context that has ended", b.Remove(ended), context.Canceled, nil)
	must(t, "remove with one that has not", b.Remove(ctx))
	closes(t, b)
}

func testStop(t *testing.T, k kit) {
	ctx := t.Context()
	b := k.box(t)
	begin := time.Now()
	result := make(chan error)
	go func() {
		_, err := b.Exec(ctx, container.Command{Args: []string{"sleep", "600"}})
		result <- err
	}()
	pause(t, 50*time.Millisecond)
	must(t, "stop", b.Stop(ctx, time.Second))
	is(t, "exec in a box that is stopped", <-result, container.ErrStopped, nil)
	closes(t, b)
	if took := time.Since(begin); took > 15*time.Second {
		t.Errorf("stop: took %v, want at most 15s", took)
	}
	_, err := b.Exec(ctx, container.Command{Args: []string{"true"}})
	is(t, "exec after stop", err, container.ErrStopped)
	_, err = b.Files().Stat(ctx, ".")
	is(t, "files after stop", err, container.ErrStopped)
	must(t, "stop again", b.Stop(ctx, 0))
}

func testList(t *testing.T, k kit) {
	ctx := t.Context()
	unique := k.spec().Name
	label := func(job string) container.Spec {
		s := k.spec()
		s.Labels = map[string]string{container.LabelJob: job, container.LabelHost: unique}
		return s
	}
	a, b := k.create(t, label("a")), k.create(t, label("b"))
	must(t, "start", b.Start(ctx))
	names := func(labels map[string]string) []string {
		infos, err := k.List(ctx, labels)
		must(t, "list", err)
		var out []string
		for _, i := range infos {
			out = append(out, i.Name)
		}
		slices.Sort(out)
		return out
	}
	both := []string{a.Info().Name, b.Info().Name}
	slices.Sort(both)
	if got := names(map[string]string{container.LabelHost: unique}); !slices.Equal(got, both) {
		t.Errorf("both: got %v, want %v", got, both)
	}
	if got := names(map[string]string{container.LabelHost: unique, container.LabelJob: "b"}); !slices.Equal(got, both[slices.Index(both, b.Info().Name):][:1]) {
		t.Errorf("job b: got %v, want %v", got, b.Info().Name)
	}
	if got := names(map[string]string{container.LabelHost: unique, container.LabelJob: "c"}); len(got) != 0 {
		t.Errorf("job c: got %v, want none", got)
	}
	if all := names(nil); !slices.Contains(all, both[0]) || !slices.Contains(all, both[1]) {
		t.Errorf("all: got %v, want at least %v", all, both)
	}
}

func testBadSpecs(t *testing.T, k kit) {
	tests := []struct {
		what   string
		change func(*container.Spec)
		want   error
	}{
		{"name", func(s *container.Spec) { s.Name = "../x" }, container.ErrSpec},
		{"workdir", func(s *container.Spec) { s.Workdir = "/proc/1" }, container.ErrSpec},
		{"memory", func(s *container.Spec) { s.Resources.Memory = -1 }, container.ErrSpec},
		{"network", func(s *container.Spec) { s.Network = container.NetworkOpen }, container.ErrDenied},
		{"user", func(s *container.Spec) { s.User = container.User{UID: 0, GID: 7} }, container.ErrDenied},
	}
	for _, tt := range tests {
		spec := k.spec()
		tt.change(&spec)
		b, err := k.Create(t.Context(), spec)
		is(t, tt.what, err, tt.want)
		if err == nil {
			must(t, "remove", b.Remove(t.Context()))
		}
	}
}

func testPrepare(t *testing.T, k kit) {
	img, err := k.Prepare(t.Context(), container.ImageRequest{Image: k.opts.Image})
	must(t, "prepare", err)
	if img.ID != k.image || img.Pulled {
		t.Errorf("got %+v, want id %s, not pulled", img, k.image)
	}
}

func testDeadBox(t *testing.T, k kit) {
	ctx := t.Context()
	b := k.box(t)
	result := make(chan error)
	go func() {
		_, err := b.Exec(ctx, container.Command{Args: []string{"sleep", "600"}})
		result <- err
	}()
	pause(t, 50*time.Millisecond)
	must(t, "remove behind the holder's back", k.Remove(ctx, b.Info().Name))
	select {
	case err := <-result:
		is(t, "exec whose box died", err, container.ErrBoxLost)
	case <-time.After(eventually.Patience):
		t.Fatalf("exec hangs %v after its box died", eventually.Patience)
	}
	closes(t, b)
	_, err := b.Exec(ctx, container.Command{Args: []string{"true"}})
	is(t, "exec in a dead box", err, container.ErrBoxLost)
	_, err = b.Files().Stat(ctx, ".")
	is(t, "files of a dead box", err, container.ErrBoxLost)
	must(t, "remove a dead box", b.Remove(ctx))
	_, err = b.Exec(ctx, container.Command{Args: []string{"true"}})
	is(t, "exec in a removed box", err, container.ErrStopped, container.ErrBoxLost)
	is(t, "start of a removed box", b.Start(ctx), container.ErrStopped)
}
