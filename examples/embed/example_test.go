package main

import (
	"context"
	"fmt"
	"os"
	"strings"
	"testing"

	"slipway/container/mock"
	"slipway/job"
	"slipway/job/follow"
	"slipway/job/natsqueue"
	"slipway/job/natsqueue/natsserver"
	"slipway/runner"
)

// submit is what README.md shows of the other side: TestREADME compares.
func submit(ctx context.Context, q *natsqueue.Conn) error {
	client := q.Client()
	j := &job.Job{ID: job.NewID(), Image: "busybox:1.36", Steps: []job.Step{{Run: "echo hello"}}}
	if err := client.Submit(ctx, j); err != nil {
		return err
	}
	for u, err := range follow.Job(ctx, client, j.ID) { // ends with the job; waits for a queue that is away
		if err != nil {
			return err
		}
		switch u := u.(type) {
		case follow.Event: // each one once, also over a lost connection
			os.Stdout.Write(u.Data) // only events of output have data
		case follow.Ended:
			fmt.Println(u.Result.Outcome) // u.Result.Reason says why, unless it is succeeded
		}
	}
	return nil
}

// A program that submits a job, follows it and reads its result, with a real queue. Boxes are in memory here.
func Example_submit() {
	dir, err := os.MkdirTemp("", "slipway-example-")
	if err != nil {
		fmt.Println(err)
		return
	}
	defer os.RemoveAll(dir)
	srv, err := natsserver.Start(natsserver.Options{Dir: dir, NoListen: true})
	if err != nil {
		fmt.Println(err)
		return
	}
	defer srv.Close()
	if err := work(context.Background(), srv); err != nil {
		fmt.Println(err)
	}
	// Output:
	// hello
	// succeeded
}

// work lets a worker live for as long as submit takes.
func work(ctx context.Context, srv *natsserver.Server) error {
	q, err := natsqueue.Connect(ctx, natsqueue.Config{InProcess: srv})
	if err != nil {
		return err
	}
	defer q.Close()
	if err := q.Setup(ctx); err != nil {
		return err
	}
	consumer, err := q.Consumer(ctx, natsqueue.ConsumerConfig{Worker: "w1"})
	if err != nil {
		return err
	}
	defer consumer.Close(ctx)
	boxes := mock.New(testless{})
	boxes.On("echo hello", mock.Reply{Stdout: "hello\n"})
	w, err := runner.New(runner.Config{Name: "w1", Queue: consumer, Provider: boxes, Slots: 1})
	if err != nil {
		return err
	}
	workCtx, stop := context.WithCancel(ctx)
	ended := make(chan error, 1)
	go func() { ended <- w.Run(workCtx) }()
	err = submit(ctx, q)
	stop()
	if ended := <-ended; err == nil {
		err = ended
	}
	return err
}

// testless lets an example use the mock, which complains to a test.
type testless struct{ testing.TB }

func (testless) Helper()                           {}
func (testless) Cleanup(func())                    {}
func (testless) Errorf(format string, args ...any) { fmt.Printf(format+"\n", args...) }

// TestREADME: what people copy is what is compiled here.
func TestREADME(t *testing.T) {
	readme, err := os.ReadFile("../../README.md")
	if err != nil {
		t.Fatal(err)
	}
	self, err := os.ReadFile("example_test.go")
	if err != nil {
		t.Fatal(err)
	}
	_, body, _ := strings.Cut(string(self), "q *natsqueue.Conn) error {\n")
	body, _, _ = strings.Cut(body, "\n}\n")
	want := "```go\n" + strings.TrimPrefix(strings.ReplaceAll(body, "\n\t", "\n"), "\t") + "\n```"
	if !strings.Contains(string(readme), want) {
		t.Errorf("README.md lacks\n%s", want)
	}
}

// TestRun_Store: a store that is not told, or not there, is said at the start.
func TestRun_Store(t *testing.T) {
	for endpoint, want := range map[string]string{"": "set S3_ENDPOINT", "http://127.0.0.1:1": "127.0.0.1:1"} {
		t.Setenv("S3_ENDPOINT", endpoint)
		t.Setenv("S3_ACCESS_KEY", "a")
		t.Setenv("S3_SECRET_KEY", "s")
		if err := run(t.Context()); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("endpoint %q: got %v, want %q", endpoint, err, want)
		}
	}
}
