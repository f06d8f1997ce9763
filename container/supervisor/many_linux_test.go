package supervisor_test

import (
	"os/exec"
	"strconv"
	"sync"
	"testing"
	"time"

	"slipway/container"
)

// No exit is ever lost, also when many commands start and end at once.
func TestManyExecs(t *testing.T) {
	r := setup(t)
	var all sync.WaitGroup
	slots := make(chan struct{}, 16)
	for i := range 500 {
		slots <- struct{}{}
		all.Go(func() {
			defer func() { <-slots }()
			x, err := r.Exec(t.Context(), container.Command{Args: []string{"/bin/sh", "-c", "exit $1", "sh", strconv.Itoa(i % 100)}, Timeout: 30 * time.Second})
			if err != nil || x.Code != i%100 || x.TimedOut {
				t.Errorf("Exec %d = %+v, %v", i, x, err)
			}
		})
	}
	all.Wait()
}

func TestManyInARow(t *testing.T) {
	r := setup(t)
	for i := range 300 {
		if x, err := r.Exec(t.Context(), container.Command{Args: []string{"true"}}); err != nil || !x.Success() {
			t.Fatalf("Exec %d = %+v, %v", i, x, err)
		}
	}
}

func BenchmarkExecTrue(b *testing.B) {
	b.Run("box", func(b *testing.B) {
		r := setup(b)
		cmd := container.Command{Args: []string{"/bin/true"}}
		for b.Loop() {
			if x, err := r.Exec(b.Context(), cmd); err != nil || x.Code != 0 {
				b.Fatalf("%+v %v", x, err)
			}
		}
	})
	b.Run("os-exec", func(b *testing.B) {
		for b.Loop() {
			if err := exec.Command("/bin/true").Run(); err != nil {
				b.Fatal(err)
			}
		}
	})
}
