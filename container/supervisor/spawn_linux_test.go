package supervisor_test

import (
	"strconv"
	"sync"
	"testing"
	"time"

	"slipway/container"
)

// TestEndDuringSpawn: a box that ends while it makes step processes ends all the same.
// One that froze a child between its fork and its exec stood still for ever.
func TestEndDuringSpawn(t *testing.T) {
	for i := range 40 {
		t.Run(strconv.Itoa(i), func(t *testing.T) {
			t.Parallel()
			r := setup(t)
			var commands sync.WaitGroup
			for range 12 {
				commands.Go(func() { _, _ = r.Exec(t.Context(), container.Command{Args: []string{"true"}}) })
			}
			<-time.After(time.Duration(i) * 500 * time.Microsecond)
			_ = r.Close()
			commands.Wait()
			begin := time.Now()
			r.wait()
			if took := time.Since(begin); took > 20*time.Second {
				t.Errorf("the box ended after %v", took)
			}
		})
	}
}
