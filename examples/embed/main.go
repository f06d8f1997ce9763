// Command embed is a worker inside a program of one's own: the whole of it is in run.
package main

import (
	"context"
	"log"
	"os"
	"os/signal"
	"syscall"

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
	queue, err := natsqueue.Connect(ctx, natsqueue.Config{URL: "nats://127.0.0.1:4222"})
	if err != nil {
		return err
	}
	defer queue.Close()
	if err := queue.Setup(ctx); err != nil {
		return err
	}
	consumer, err := queue.Consumer(ctx, natsqueue.ConsumerConfig{Worker: "embedded", Queues: []string{"default"}})
	if err != nil {
		return err
	}
	defer consumer.Close(context.WithoutCancel(ctx))
	boxes, err := docker.New(docker.Config{})
	if err != nil {
		return err
	}
	defer boxes.Close()
	store, err := s3store.New(s3store.Config{
		Endpoint: os.Getenv("S3_ENDPOINT"), Bucket: "slipway", AccessKey: os.Getenv("S3_ACCESS_KEY"), SecretKey: os.Getenv("S3_SECRET_KEY"),
	})
	if err != nil {
		return err
	}
	w, err := runner.New(runner.Config{Name: "embedded", Queue: consumer, Provider: boxes, Store: store, Slots: 4})
	if err != nil {
		return err
	}
	return w.Run(ctx) // ctx done: take no more jobs, let those that run finish, clean up, return nil
}
