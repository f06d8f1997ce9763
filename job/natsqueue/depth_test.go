package natsqueue_test

import (
	"context"
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	"slipway/job"
	"slipway/job/natsqueue"
	"slipway/test/eventually"
)

// TestDepthOfOtherLanes: jobs that wait where this worker does not look are counted: in queues that others serve, in those
// that nobody serves, and where a foreign program put them.
func TestDepthOfOtherLanes(t *testing.T) {
	t.Parallel()
	b := setup(t)
	elsewhere := b.cfg
	elsewhere.Queues = []string{"other", "empty"}
	conn, err := natsqueue.Connect(t.Context(), elsewhere)
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	if err := conn.Setup(t.Context()); err != nil {
		t.Fatal(err)
	}
	for _, q := range []string{"", "other", "mistyped", "mistyped"} {
		j := makeJob()
		j.Queue = q
		b.submit(j)
	}
	b.publish(b.cfg.Prefix+".J.default.urgent."+string(job.NewID()), []byte("{}"))
	depths := func() string {
		all, err := b.conn.Depth(t.Context())
		if err != nil {
			t.Fatalf("Depth: %v", err)
		}
		var lines []string
		for _, d := range all {
			if d.Waiting > 0 && (d.OldestAge <= 0 || d.OldestAge > time.Minute) {
				t.Errorf("age of the oldest job of %s: got %s", d.Queue, d.OldestAge)
			}
			lines = append(lines, fmt.Sprintf("%s/%s %d", d.Queue, d.Priority, d.Waiting))
		}
		return strings.Join(lines, ", ")
	}
	const served = "default/high 0, default/normal 1, default/low 0, other/normal 1"
	eventually.True(t, b.bound(5*time.Second), "the lanes with a consumer, and then also those without", func() bool {
		return depths() == served+", default/urgent 1, mistyped/normal 2"
	})

	// Once somebody serves the queue, its lanes are as any other's.
	elsewhere.Queues = []string{"mistyped"}
	late, err := natsqueue.Connect(t.Context(), elsewhere)
	if err != nil {
		t.Fatal(err)
	}
	defer late.Close()
	if err := late.Setup(t.Context()); err != nil {
		t.Fatal(err)
	}
	eventually.True(t, b.bound(5*time.Second), "each lane once", func() bool {
		return depths() == "default/high 0, default/normal 1, default/low 0, mistyped/normal 2, other/normal 1, default/urgent 1"
	})
}

// TestDueJunk: what came due and can be no job is removed, and reported once. It came again every 30 s.
func TestDueJunk(t *testing.T) {
	t.Parallel()
	var mu sync.Mutex
	var reported []string
	b := setup(t, func(c *natsqueue.Config) {
		c.OnError = func(err error) {
			mu.Lock()
			defer mu.Unlock()
			reported = append(reported, err.Error())
		}
	})
	b.join(t, "w1")
	junk := []string{".D.due.x", ".D.due.default.normal", ".D.due.default.normal." + string(job.NewID()) + ".more"}
	for _, subject := range junk {
		b.publish(b.cfg.Prefix+subject, []byte("junk"))
	}
	eventually.True(t, b.bound(10*time.Second), "nothing is due", func() bool { return len(b.stored("SCHED", b.cfg.Prefix+".D.due.>")) == 0 })
	for _, subject := range junk {
		eventually.True(t, b.bound(5*time.Second), subject+" is reported once", func() bool {
			mu.Lock()
			defer mu.Unlock()
			return strings.Count(strings.Join(reported, "\n"), fmt.Sprintf("%q", b.cfg.Prefix+subject)) == 1
		})
	}
}

// TestDepthDenied: an account that may not list consumers is told of its own queues.
func TestDepthDenied(t *testing.T) {
	t.Parallel()
	conn := roleServer(t)("nolist:l", "")
	ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second)
	defer cancel()
	if all, err := conn.Depth(ctx); err != nil || len(all) != 3 {
		t.Errorf("got %+v, %v, want the three lanes of default", all, err)
	}
}
