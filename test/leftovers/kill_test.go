package leftovers

import (
	"math/rand/v2"
	"strings"
	"testing"
	"time"

	"slipway/job"
	testimage "slipway/test/image"
	"slipway/test/requires"
)

// unique makes a worker's name that no other run has.
func unique(prefix string) string { return prefix + "-" + strings.ToLower(string(job.NewID())) }

// TestWorkerKilled: kill -9 of workers of one name, each at a random moment of the lives of its boxes. What these leave is gone
// in the end, by the boxes themselves or by the last of the workers, which starts where its predecessors did.
func TestWorkerKilled(t *testing.T) {
	testimage.Require(t, testimage.Shell)
	kills := 5
	if requires.IsLong() {
		kills = 50
	}
	name := unique("killed")
	left := 0
	for range kills {
		w := begin(t, name, "", 100, "mkdir -p a/b; echo x > a/b/f; sleep 0.$((RANDOM % 5))")
		<-time.After(time.Duration(rand.Int64N(int64(2500 * time.Millisecond))))
		w.kill()
		boxes, volumes := things(t, "", name)
		left += max(len(boxes), len(volumes))
	}
	w := begin(t, name, "", 0, "")
	took := nothingLeft(t, "", name)
	t.Logf("%d kills, %d boxes or volumes there right after one; the last of all gone %v after the last kill; reaped: %d",
		kills, left, took.Round(time.Millisecond), strings.Count(w.log.String(), "box reaped"))
}
