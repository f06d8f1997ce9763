package supervisor_test

import (
	"fmt"
	"os"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"slipway/container"
	"slipway/container/supervisor"
	"slipway/test/eventually"
)

func TestOutputOrderAndSize(t *testing.T) {
	r := setup(t)
	x, out := r.sh("seq 1 300000")
	var want strings.Builder
	for i := range 300000 {
		fmt.Fprintln(&want, i+1)
	}
	if out != want.String() {
		t.Errorf("%d bytes came, want %d, or their order differs", len(out), want.Len())
	}
	if x.Output != int64(want.Len()) {
		t.Errorf("Output = %d, want %d", x.Output, want.Len())
	}
}

// A reader that stands still stops its own command only.
func TestSlowReader(t *testing.T) {
	t.Parallel()
	r := setup(t, func(c *supervisor.Config) { c.DeadMan = 4 * time.Second })
	release, flooding := make(chan struct{}), make(chan struct{})
	var once sync.Once
	var total int64
	done := make(chan container.Exit, 1)
	go func() {
		cmd := sh("head -c 50000000 /dev/zero; echo end >&2")
		cmd.Output = func(_ container.Stream, b []byte) {
			total += int64(len(b))
			once.Do(func() { close(flooding) })
			<-release
		}
		x, err := r.Exec(t.Context(), cmd)
		if err != nil {
			t.Errorf("Exec: %v", err)
		}
		done <- x
	}()
	<-flooding
	for begin := time.Now(); time.Since(begin) < 5*time.Second; { // longer than DeadMan
		if x, out := r.sh("sleep 0.2; echo alive"); x.Code != 0 || out != "alive\n" {
			t.Fatalf("beside the flood: %+v %q", x, out)
		}
	}
	if rss := rssOf(t, r.cmd.Process.Pid); rss > 60<<20 {
		t.Errorf("the supervisor holds %d bytes", rss)
	}
	close(release)
	if x := <-done; x.Code != 0 || x.Output != 50000004 || total != x.Output {
		t.Errorf("exit = %+v, %d bytes came", x, total)
	}
}

func rssOf(t *testing.T, pid int) int64 {
	b, err := os.ReadFile(fmt.Sprintf("/proc/%d/statm", pid))
	if err != nil {
		t.Fatal(err)
	}
	pages, err := strconv.ParseInt(strings.Fields(string(b))[1], 10, 64)
	if err != nil {
		t.Fatal(err)
	}
	return pages * int64(os.Getpagesize())
}

// A slow reader does not keep a command from its deadline.
func TestTimeoutWithSlowReader(t *testing.T) {
	t.Parallel()
	r := setup(t)
	eventually.Doubling(t, "the command prints", func(limit time.Duration) bool {
		m := mark(t)
		begun, release := make(chan struct{}), make(chan struct{})
		done := make(chan container.Exit, 1)
		var once sync.Once
		go func() {
			x, _, err := r.try(t.Context(), "yes", withMark(m), func(c *container.Command) {
				c.Timeout = limit
				c.Output = func(container.Stream, []byte) {
					once.Do(func() { close(begun) })
					<-release
				}
			})
			if err != nil {
				t.Errorf("Exec: %v", err)
			}
			done <- x
		}()
		select {
		case <-begun:
		case <-done: // its deadline came first
			return false
		}
		eventually.True(t, limit+eventually.Patience, "the command is killed", func() bool { return marked(m) == 0 })
		close(release)
		if x := <-done; !x.TimedOut {
			t.Errorf("exit = %+v, want TimedOut", x)
		}
		return true
	})
}

func BenchmarkOutput(b *testing.B) {
	r := setup(b)
	const size = 256 << 20
	b.SetBytes(size)
	for b.Loop() {
		var n int64
		cmd := sh("dd if=/dev/zero bs=64k count=4096 2>/dev/null")
		cmd.Output = func(_ container.Stream, p []byte) { n += int64(len(p)) }
		if _, err := r.Exec(b.Context(), cmd); err != nil || n != size {
			b.Fatalf("%d bytes, %v", n, err)
		}
	}
}
