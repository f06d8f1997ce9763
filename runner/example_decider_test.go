package runner_test

import (
	"context"
	"fmt"
	"strings"

	"slipway/container/mock"
	"slipway/job"
	"slipway/job/jobtest"
	"slipway/runner"
	"slipway/runner/loop"
)

// fixer decides by what it sees: it tests, repairs what the test names, and tests again.
type fixer struct{ tests int }

func (f *fixer) Next(_ context.Context, t loop.Turn) (loop.Decision, error) {
	if t.Ending {
		return loop.Decision{Finish: true}, nil // canceled, or out of time
	}
	test := loop.Action{Step: job.Step{Name: "test", Run: "go test", ContinueOnError: true}}
	if len(t.Last) == 0 {
		return loop.Decision{Actions: []loop.Action{test}}, nil
	}
	last := t.Last[len(t.Last)-1]
	f.tests++
	switch {
	case last.Status == job.StepSucceeded:
		return loop.Decision{Finish: true}, nil
	case f.tests == 3:
		return loop.Decision{Invalid: "I know no more"}, nil // too many of these end the job
	}
	file, _, _ := strings.Cut(last.Output.Head, ":")
	fix := loop.Action{Step: job.Step{Name: "fix " + file, Write: &job.WriteFile{Path: file, Content: new(string)}}}
	return loop.Decision{Actions: []loop.Action{fix, test}}, nil // in order
}

// Steps that something else than a script decides: a program, or a model that it asks. One Decider serves one attempt.
func Example_decider() {
	queue, boxes := jobtest.NewQueue(jobtest.Config{}), mock.New(testless{})
	boxes.On("go test", mock.Reply{Stdout: "main.go: syntax error\n", Code: 1}, mock.Reply{Stdout: "ok\n"})

	w, err := runner.New(runner.Config{
		Name: "w1", Queue: queue.Consumer("w1"), Provider: boxes, Slots: 1,
		Decider: func(*job.Job) (loop.Decider, error) { return &fixer{}, nil },
	})
	if err != nil {
		fmt.Println(err)
		return
	}
	ctx, stop := context.WithCancel(context.Background())
	ended := make(chan error)
	go func() { ended <- w.Run(ctx) }()

	j := &job.Job{ID: job.NewID(), Image: "docker.io/library/golang:1.26", Steps: []job.Step{{Run: "make it work"}}}
	if err := queue.Submit(ctx, j); err != nil {
		fmt.Println(err)
	}
	r, err := queue.Result(ctx, j.ID)
	if err != nil {
		fmt.Println(err)
	}
	for _, s := range r.Steps {
		fmt.Println(s.Name, s.Status)
	}
	fmt.Println(r.Outcome)
	stop()
	fmt.Println("Run:", <-ended)
	// Output:
	// test failed
	// fix main.go succeeded
	// test succeeded
	// succeeded
	// Run: <nil>
}
