package main

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"slipway/job"
	"slipway/job/natsqueue"
)

// benchList compares List with what it was: a read for each job, with its result in the record.
func benchList(ctx context.Context, sizes []int) error {
	fmt.Printf("%-32s %10s %12s %12s %8s\n", "list of decided jobs", "jobs", "slipway", "one by one", "ratio")
	for _, n := range sizes {
		if err := listOf(ctx, n, 200, "results of 1 KB"); err != nil {
			return err
		}
	}
	return listOf(ctx, 500, 840<<10, "results of 840 KB")
}

func listOf(ctx context.Context, n, output int, name string) error {
	r, err := newRig(ctx)
	if err != nil {
		return err
	}
	defer r.close()
	record, result, err := r.decided(ctx, output)
	if err != nil {
		return err
	}
	ids := make([]job.ID, n)
	for i := range ids {
		ids[i] = job.NewID()
	}
	if err := r.fillRecords(ctx, ids, record); err != nil {
		return err
	}
	took, err := r.list(ctx, n)
	if err != nil {
		return err
	}
	record["result"] = result
	if err := r.fillRecords(ctx, ids, record); err != nil {
		return err
	}
	begun := time.Now()
	for _, id := range ids {
		if _, err := r.conn.Client().Status(ctx, id); err != nil {
			return err
		}
	}
	old := time.Since(begun)
	fmt.Printf("%-32s %10d %12s %12s %8.3f\n", name, n, ms(took), ms(old), took.Seconds()/old.Seconds())
	return nil
}

// list lists everything, of which at least n are there.
func (r *rig) list(ctx context.Context, n int) (time.Duration, error) {
	begun, seen := time.Now(), 0
	for _, err := range r.conn.Client().List(ctx, job.ListQuery{Limit: 2 * n}) {
		if err != nil {
			return 0, err
		}
		seen++
	}
	if seen < n {
		return 0, fmt.Errorf("%d jobs were listed, not %d", seen, n)
	}
	return time.Since(begun), nil
}

// decided runs one job to its end, and returns what the queue keeps of it.
func (r *rig) decided(ctx context.Context, output int) (record map[string]json.RawMessage, result []byte, err error) {
	consumer, err := r.conn.Consumer(ctx, natsqueue.ConsumerConfig{Worker: "bench"})
	if err != nil {
		return nil, nil, err
	}
	defer func() { _ = consumer.Close(context.WithoutCancel(ctx)) }()
	j := aJob()
	if err := r.conn.Client().Submit(ctx, j); err != nil {
		return nil, nil, err
	}
	lease, err := consumer.Next(ctx)
	if err != nil {
		return nil, nil, err
	}
	exit, now := 0, time.Now().UTC()
	res := &job.Result{Outcome: job.Succeeded, StartedAt: now, BoxID: strings.Repeat("b", 64), ImageDigest: "sha256:" + strings.Repeat("a", 64)}
	for i := range 2 {
		res.Steps = append(res.Steps, job.StepResult{
			Index: i, Name: "one", Status: job.StepSucceeded, ExitCode: &exit, StartedAt: now, FinishedAt: now,
			Output: job.Output{Head: strings.Repeat("x", output/2), Bytes: int64(output / 2)},
		})
	}
	if _, err := lease.Commit(ctx, res); err != nil {
		return nil, nil, err
	}
	kept, err := r.last(ctx, "KV_slipway-jobs", "$KV.slipway-jobs."+string(j.ID))
	if err != nil {
		return nil, nil, err
	}
	published, err := r.last(ctx, "slipway-RESULTS", "slipway.R.default."+string(j.ID)+".1")
	if err != nil {
		return nil, nil, err
	}
	err = json.Unmarshal(kept, &record)
	return record, published, err
}

func (r *rig) last(ctx context.Context, stream, subject string) ([]byte, error) {
	s, err := r.js.Stream(ctx, stream)
	if err != nil {
		return nil, err
	}
	msg, err := s.GetLastMsgForSubject(ctx, subject)
	if err != nil {
		return nil, err
	}
	return msg.Data, nil
}

// fillRecords stores a record like record for each of ids.
func (r *rig) fillRecords(ctx context.Context, ids []job.ID, record map[string]json.RawMessage) error {
	data, err := json.Marshal(record)
	if err != nil {
		return err
	}
	return r.fill(ctx, len(ids), func(i int) *nats.Msg {
		msg := nats.NewMsg("$KV.slipway-jobs." + string(ids[i]))
		msg.Data = data
		msg.Header.Set(jetstream.MsgTTLHeader, "720h")
		return msg
	})
}
