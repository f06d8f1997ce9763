package main

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"time"

	mobycontainer "github.com/moby/moby/api/types/container"
	"github.com/moby/moby/client"

	"slipway/container"
	"slipway/container/docker"
	"slipway/devserver"
	"slipway/job"
	"slipway/job/natsqueue"
	"slipway/job/natsqueue/natsserver"
	"slipway/runner"
	"slipway/sync/s3store"
	"slipway/test/devprogram"
	testimage "slipway/test/image"
)

const image = "busybox:1.36"

// parts is what the sections share: one engine client, one provider, one queue with its worker, one store.
type parts struct {
	api      *client.Client
	provider *docker.Provider
	queue    job.Client
	store    *s3store.Store
	closers  []func()
	freed    chan struct{} // a slot is free again: the box is removed
	dir      string
	raw      *mobycontainer.InspectResponse // see likeABox
	running  container.Sandbox              // see box
}

func newParts(ctx context.Context) (*parts, error) {
	p := &parts{freed: make(chan struct{}, 1)}
	var err error
	if p.dir, err = os.MkdirTemp(memory(), "slipway-bench-"); err != nil {
		return nil, err
	}
	p.closers = append(p.closers, func() { _ = os.RemoveAll(p.dir) })
	for _, step := range []func(context.Context) error{p.openEngine, p.openStore, p.openQueue} {
		if err := step(ctx); err != nil {
			p.close()
			return nil, err
		}
	}
	return p, nil
}

// memory returns a folder in memory, where there is one: on a disk the file
// system's own cost of 5,000 new files swings by more than the rivals differ.
func memory() string {
	if info, err := os.Stat("/dev/shm"); err == nil && info.IsDir() {
		return "/dev/shm"
	}
	return ""
}

func (p *parts) openEngine(ctx context.Context) error {
	if err := testimage.Ensure(ctx, image); err != nil {
		return err
	}
	var err error
	if p.api, err = client.New(client.FromEnv); err != nil {
		return err
	}
	if p.provider, err = docker.New(docker.Config{}); err != nil {
		return err
	}
	p.closers = append(p.closers, func() { _ = p.provider.Close() })
	return p.provider.Check(ctx)
}

func (p *parts) openStore(ctx context.Context) error {
	programs, err := devprogram.Build(devprogram.S3)
	if err != nil {
		return err
	}
	gw, err := devserver.Start(ctx, devserver.Options{Programs: programs, S3: &devserver.S3{Dir: filepath.Join(p.dir, "s3")}})
	if err != nil {
		return err
	}
	p.closers = append(p.closers, func() { _ = gw.Close() })
	p.store, err = s3store.New(s3store.Config{Endpoint: gw.Endpoint, Bucket: "bench", AccessKey: gw.AccessKey, SecretKey: gw.SecretKey, PathStyle: true})
	if err != nil {
		return err
	}
	if err := p.store.EnsureBucket(ctx); err != nil {
		return err
	}
	return p.store.SelfTest(ctx) // as a worker does: the store learns from it how to seal bodies
}

// openQueue starts an embedded server and a worker with one slot.
func (p *parts) openQueue(ctx context.Context) error {
	srv, err := natsserver.Start(natsserver.Options{Dir: filepath.Join(p.dir, "nats")})
	if err != nil {
		return err
	}
	p.closers = append(p.closers, func() { srv.Close() })
	conn, err := natsqueue.Connect(ctx, natsqueue.Config{URL: srv.ClientURL()})
	if err != nil {
		return err
	}
	p.closers = append(p.closers, func() { conn.Close() })
	if err := conn.Setup(ctx); err != nil {
		return err
	}
	p.queue = conn.Client()
	consumer, err := conn.Consumer(ctx, natsqueue.ConsumerConfig{Worker: "bench", Queues: []string{job.DefaultQueue}})
	if err != nil {
		return err
	}
	w, err := runner.New(runner.Config{Name: "bench", Queue: consumer, Provider: p.provider, Store: p.store, Slots: 1, SoftStop: -1, Observer: freed{ch: p.freed}})
	if err != nil {
		return err
	}
	workCtx, cancel := context.WithCancel(ctx)
	done := make(chan error, 1)
	go func() { done <- w.Run(workCtx) }()
	p.closers = append(p.closers, func() {
		cancel()
		if err := <-done; err != nil {
			fmt.Fprintln(os.Stderr, "worker:", err)
		}
	})
	return nil
}

// close ends everything in the reverse order.
func (p *parts) close() {
	for i := len(p.closers) - 1; i >= 0; i-- {
		p.closers[i]()
	}
}

// freed tells when the box of a job is removed.
type freed struct {
	runner.NopObserver
	ch chan struct{}
}

// PhaseDone passes the end of the cleanup on.
func (f freed) PhaseDone(phase string, _ time.Duration, _ bool) {
	if phase == "cleanup" {
		f.ch <- struct{}{}
	}
}

// runJob submits a job of n steps `true` and waits until its box is removed.
func (p *parts) runJob(ctx context.Context, n int) (time.Duration, error) {
	j := &job.Job{ID: job.NewID(), Image: image}
	for range n {
		j.Steps = append(j.Steps, job.Step{Command: []string{"true"}})
	}
	begun := time.Now()
	if err := p.queue.Submit(ctx, j); err != nil {
		return 0, err
	}
	r, err := p.queue.Result(ctx, j.ID)
	if err != nil {
		return 0, err
	}
	<-p.freed
	took := time.Since(begun)
	if r.Outcome != job.Succeeded {
		return 0, fmt.Errorf("job %s: %s/%s: %s", j.ID, r.Outcome, r.Reason, r.Message)
	}
	return took, nil
}

// box starts a box, once, and returns it together with what the engine says it was made of.
func (p *parts) box(ctx context.Context) (container.Sandbox, mobycontainer.InspectResponse, error) {
	var none mobycontainer.InspectResponse
	if p.running != nil {
		res, err := p.api.ContainerInspect(ctx, p.running.Info().ID, client.ContainerInspectOptions{})
		return p.running, res.Container, err
	}
	img, err := p.provider.Prepare(ctx, container.ImageRequest{Image: image})
	if err != nil {
		return nil, none, err
	}
	spec, err := (container.Policy{}).Apply(container.Spec{Name: "slipway-bench", Image: img.ID})
	if err != nil {
		return nil, none, err
	}
	box, err := p.provider.Create(ctx, spec)
	if err != nil {
		return nil, none, err
	}
	p.closers = append(p.closers, func() { _ = box.Remove(context.WithoutCancel(ctx)) })
	if err := box.Start(ctx); err != nil {
		return nil, none, err
	}
	p.running = box
	res, err := p.api.ContainerInspect(ctx, box.Info().ID, client.ContainerInspectOptions{})
	return box, res.Container, err
}
