package runner_test

import (
	"context"
	"fmt"

	"slipway/container/mock"
	"slipway/job"
	"slipway/job/jobtest"
	"slipway/runner"
	"slipway/sync/wsynctest"
)

// A worker inside another program. The three parts are twins in memory here;
// job/natsqueue, container/docker and sync/s3store are the real ones.
func ExampleWorker() {
	queue, boxes, store := jobtest.NewQueue(jobtest.Config{}), mock.New(testless{}), wsynctest.NewStore()
	boxes.On("go test ./...", mock.Reply{Stdout: "ok  \texample\n", Files: map[string]string{"report.txt": "all good"}})

	w, err := runner.New(runner.Config{Name: "embedded", Queue: queue.Consumer("embedded"), Provider: boxes, Store: store, Slots: 4})
	if err != nil {
		fmt.Println(err)
		return
	}
	ctx, stop := context.WithCancel(context.Background())
	ended := make(chan error)
	go func() { ended <- w.Run(ctx) }()

	j := &job.Job{
		ID: job.NewID(), Image: "docker.io/library/golang:1.26",
		Workspace: &job.Workspace{Prefix: "acme/parser"},
		Steps:     []job.Step{{Name: "test", Run: "go test ./..."}},
	}
	if err := queue.Submit(ctx, j); err != nil {
		fmt.Println(err)
	}
	r, err := queue.Result(ctx, j.ID)
	if err != nil {
		fmt.Println(err)
	}
	fmt.Println(r.Outcome, "by", r.Worker, "in attempt", r.Attempt)
	fmt.Printf("%s: %s %q\n", r.Steps[0].Name, r.Steps[0].Status, r.Steps[0].Output.Head)
	for _, c := range r.Workspace.Changes {
		fmt.Println(c.Kind, c.Path)
	}

	stop() // take no more jobs, let those that run finish, clean up
	fmt.Println("Run:", <-ended, "boxes left:", len(boxes.Alive()))
	// Output:
	// succeeded by embedded in attempt 1
	// test: succeeded "ok  \texample\n"
	// added report.txt
	// Run: <nil> boxes left: 0
}
