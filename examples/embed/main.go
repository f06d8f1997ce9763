// Command embed is a worker inside a program of one's own: the whole of it is in run.
//
// It serves the queue "embedded" of the nats-server at 127.0.0.1:4222, or at NATS_URL, with boxes on this machine's
// engine. S3_ENDPOINT, S3_ACCESS_KEY and S3_SECRET_KEY say where its store is; the bucket is "slipway". worker dev prints a
// server and keys to try it with:
//
//	S3_ENDPOINT=http://127.0.0.1:7070 S3_ACCESS_KEY=… S3_SECRET_KEY=… go run ./examples/embed
//	bin/submit run --queue embedded examples/hello.yaml
package main

import (
	"cmp"
	"context"
	"fmt"
	"log"
	"os"
	"os/signal"
	"syscall"

	"go.uber.org/zap"

	"slipway/container/docker"
	"slipway/job/natsqueue"
	"slipway/runner"
	"slipway/sync/s3store"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	if err := run(ctx); err != nil {
		log.Fatal(err)
	}
}

func run(ctx context.Context) error {
	const name, queueName = "embedded", "embedded"
	store, err := openStore(ctx)
	if err != nil {
		return err
	}
	defer store.Close()
	queue, err := natsqueue.Connect(ctx, natsqueue.Config{URL: cmp.Or(os.Getenv("NATS_URL"), "nats://127.0.0.1:4222"), Queues: []string{queueName}})
	if err != nil {
		return err
	}
	defer queue.Close()
	if err := queue.Setup(ctx); err != nil {
		return err
	}
	consumer, err := queue.Consumer(ctx, natsqueue.ConsumerConfig{Worker: name})
	if err != nil {
		return err
	}
	defer consumer.Close(context.WithoutCancel(ctx))
	boxes, err := docker.New(docker.Config{})
	if err != nil {
		return err
	}
	defer boxes.Close()
	logger, err := zap.NewDevelopment() // a line for each job, on stderr
	if err != nil {
		return err
	}
	w, err := runner.New(runner.Config{Name: name, Queue: consumer, Provider: boxes, Store: store, Slots: 4, Logger: logger})
	if err != nil {
		return err
	}
	log.Printf("serving queue %s; Ctrl-C ends it when its jobs are done", queueName)
	return w.Run(ctx) // ctx done: take no more jobs, let those that run finish, clean up, return nil
}

// openStore tests the store, too: a wrong address would else be found by the first job with a workspace.
func openStore(ctx context.Context) (*s3store.Store, error) {
	cfg := s3store.Config{
		Endpoint: os.Getenv("S3_ENDPOINT"), Bucket: "slipway", PathStyle: true,
		AccessKey: os.Getenv("S3_ACCESS_KEY"), SecretKey: os.Getenv("S3_SECRET_KEY"),
	}
	if cfg.Endpoint == "" || cfg.AccessKey == "" || cfg.SecretKey == "" {
		return nil, fmt.Errorf("open the store: set S3_ENDPOINT, S3_ACCESS_KEY and S3_SECRET_KEY, such as those that worker dev prints")
	}
	store, err := s3store.New(cfg)
	if err != nil {
		return nil, fmt.Errorf("open the store: %w", err)
	}
	if err := store.SelfTest(ctx); err != nil {
		store.Close()
		return nil, fmt.Errorf("open the store at S3_ENDPOINT: %w", err)
	}
	return store, nil
}
