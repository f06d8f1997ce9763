// Command queue measures what package natsqueue costs on an embedded server, where that grows with the number of jobs or
// workers. Each section prints its figures beside those of the way that it replaced or of the raw calls, taken in the same
// run. No engine is needed. Run: make bench-queue
//
//	list    a list of many jobs | one read for each job, its result inside
//	idle    requests a second of a worker without jobs, by its number of slots
//	fair    whose jobs a worker takes while two lanes have jobs: by the lane that delivered | by the lane that was asked first
//	claim   the next job of a long queue: a raw pull | a raw pull of a stream whose first message stays | slipway
package main

import (
	"context"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"strconv"
	"strings"
	"time"

	"github.com/nats-io/nats-server/v2/server"
	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"slipway/job"
	"slipway/job/natsqueue"
)

func main() {
	only := flag.String("only", "", "one section: list, idle, fair, claim")
	sizes := flag.String("n", "", "numbers of jobs or of slots, separated by commas (default: 10000,100000 for list; 1,16,64 for idle; 600 for fair; 1000,100000,1000000 for claim)")
	flag.Parse()
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	if err := run(ctx, *only, *sizes); err != nil {
		fmt.Fprintln(os.Stderr, "bench:", err)
		os.Exit(1)
	}
}

func run(ctx context.Context, only, sizes string) error {
	for _, s := range []struct {
		name  string
		sizes []int
		run   func(context.Context, []int) error
	}{
		{"list", []int{10_000, 100_000}, benchList},
		{"idle", []int{1, 16, 64}, benchIdle},
		{"fair", []int{600}, benchFair},
		{"claim", []int{1_000, 100_000, 1_000_000}, benchClaim},
	} {
		if only != "" && only != s.name {
			continue
		}
		if sizes != "" {
			s.sizes = nil
			for word := range strings.SplitSeq(sizes, ",") {
				n, err := strconv.Atoi(word)
				if err != nil {
					return err
				}
				s.sizes = append(s.sizes, n)
			}
		}
		if err := s.run(ctx, s.sizes); err != nil {
			return fmt.Errorf("%s: %w", s.name, err)
		}
	}
	return nil
}

// rig is a server of its own with a queue on it, and a raw connection beside.
type rig struct {
	srv  *server.Server
	dir  string
	conn *natsqueue.Conn
	nc   *nats.Conn
	js   jetstream.JetStream
}

// newRig starts a server that does not sync each write to the disk: the sections fill it with a million messages.
func newRig(ctx context.Context) (*rig, error) {
	dir, err := os.MkdirTemp("", "slipway-bench-")
	if err != nil {
		return nil, err
	}
	r := &rig{dir: dir}
	if err := r.start(ctx); err != nil {
		r.close()
		return nil, err
	}
	return r, nil
}

func (r *rig) start(ctx context.Context) error {
	var err error
	if r.srv, err = server.NewServer(&server.Options{Host: "127.0.0.1", Port: server.RANDOM_PORT, JetStream: true, StoreDir: r.dir, NoSigs: true, NoLog: true}); err != nil {
		return err
	}
	r.srv.Start()
	if !r.srv.ReadyForConnections(30 * time.Second) {
		return fmt.Errorf("the server is not ready")
	}
	if r.conn, err = natsqueue.Connect(ctx, natsqueue.Config{URL: r.srv.ClientURL(), MaxJobs: 2_000_000, MaxJobBytes: 4 << 30, OnError: func(err error) { fmt.Fprintln(os.Stderr, "queue:", err) }}); err != nil {
		return err
	}
	if err := r.conn.Setup(ctx); err != nil {
		return err
	}
	if r.nc, err = nats.Connect(r.srv.ClientURL()); err != nil {
		return err
	}
	r.js, err = jetstream.New(r.nc, jetstream.WithPublishAsyncMaxPending(2000), jetstream.WithPublishAsyncTimeout(time.Minute))
	return err
}

func (r *rig) close() {
	if r.nc != nil {
		r.nc.Close()
	}
	if r.conn != nil {
		r.conn.Close()
	}
	if r.srv != nil {
		r.srv.Shutdown()
		r.srv.WaitForShutdown()
	}
	_ = os.RemoveAll(r.dir)
}

// fill stores n messages that make makes.
func (r *rig) fill(ctx context.Context, n int, message func(i int) *nats.Msg) error {
	for i := range n {
		if _, err := r.js.PublishMsgAsync(message(i), jetstream.WithStallWait(time.Minute)); err != nil {
			return err
		}
	}
	select {
	case <-r.js.PublishAsyncComplete():
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

// aJob is a job as people submit it.
func aJob() *job.Job {
	return &job.Job{
		Version: job.Version, ID: job.NewID(), Name: "bench", Image: "busybox", Labels: map[string]string{"team": "bench", "run": "17"},
		Steps: []job.Step{{Name: "one", Run: "make test"}, {Name: "two", Run: "make lint"}},
	}
}

func ms(d time.Duration) string { return fmt.Sprintf("%.2f ms", float64(d.Microseconds())/1000) }
