package main

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"slipway/internal/suggest"
	"slipway/job"
)

// servedTime bounds the look at the workers, which only serves a remark.
const servedTime = 2 * time.Second

// unserved is a remark about a job whose queue no living worker serves, empty if one does: a mistyped queue is accepted like any
// other, and waits for ever. A queue that can't tell its workers gets no remark.
func unserved(ctx context.Context, c job.Client, queue string) string {
	ctx, cancel := context.WithTimeout(ctx, servedTime)
	defer cancel()
	queues, ok := served(ctx, c)
	queue = cmp.Or(queue, job.DefaultQueue)
	switch {
	case !ok || slices.Contains(queues, queue):
		return ""
	case len(queues) == 0:
		return fmt.Sprintf("no worker is alive at the moment: the job waits in queue %s", queue)
	}
	return fmt.Sprintf("no living worker serves queue %s, in which the job waits (served: %s)%s",
		queue, strings.Join(queues, ", "), suggest.DidYouMean(suggest.Nearest(queue, queues)))
}

// served lists the queues that living workers serve. Not ok: the queue can't tell.
func served(ctx context.Context, c job.Client) (queues []string, ok bool) {
	workers, ok := c.(interface {
		Served(ctx context.Context) ([]string, error)
	})
	if !ok {
		return nil, false
	}
	queues, err := workers.Served(ctx)
	return queues, err == nil
}
