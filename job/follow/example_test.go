package follow_test

import (
	"context"
	"fmt"
	"log"

	"slipway/job"
	"slipway/job/follow"
	"slipway/job/jobtest"
)

func Example() {
	ctx := context.Background()
	client := jobtest.NewQueue(jobtest.Config{}) // or (*natsqueue.Conn).Client
	j := &job.Job{ID: job.NewID(), Image: "busybox:1.36", Steps: []job.Step{{Run: "echo hello"}}}
	if err := client.Submit(ctx, j); err != nil {
		log.Fatal(err)
	}
	go runOne(ctx, client)

	for u, err := range follow.Job(ctx, client, j.ID) {
		if err != nil {
			log.Fatal(err) // ctx has ended, or the queue knows no such job
		}
		switch u := u.(type) {
		case follow.Event:
			fmt.Printf("%s %s", u.Kind, u.Data) // only events of output have data
		case follow.Gap:
			fmt.Printf("%d events of attempt %d are missing\n", u.Missing, u.Attempt)
		case follow.Waiting:
			fmt.Println("still", u.Status.State)
		case follow.Disconnected:
			fmt.Println("the queue does not answer, trying again:", u.Err)
		case follow.Ended:
			fmt.Println(u.Result.Outcome)
		}
	}
	// Output:
	// output hello
	// finished succeeded
}

// runOne stands for a worker.
func runOne(ctx context.Context, q *jobtest.Queue) {
	lease, err := q.Consumer("w1").Next(ctx)
	if err != nil {
		log.Fatal(err)
	}
	if err := lease.Emit(ctx, []job.Event{{Kind: job.EventOutput, Stream: "stdout", Data: []byte("hello\n")}}); err != nil {
		log.Fatal(err)
	}
	if _, err := lease.Commit(ctx, &job.Result{Outcome: job.Succeeded}); err != nil {
		log.Fatal(err)
	}
}
