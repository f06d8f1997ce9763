// Command stress runs the tests again and again beside processes that burn the CPU: what passes on a quiet machine
// only because it is quick fails here.
//
//	go run ./test/stress [-rounds 10] [-burners 4] [packages and flags of go test]
//
// The burners are threads of this process, so there is nothing to clean up: they end with it, whatever ends it.
package main

import (
	"context"
	"flag"
	"fmt"
	"io"
	"os"
	"os/exec"
	"os/signal"
	"runtime"
	"sync"
	"sync/atomic"
	"syscall"
	"time"

	"slipway/test/procgroup"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	rounds := flag.Int("rounds", 10, "how often the tests are run")
	burners := flag.Int("burners", 4, "threads that burn the CPU meanwhile")
	flag.Parse()
	args := flag.Args()
	if len(args) == 0 {
		args = []string{"./..."}
	}
	failures, err := run(ctx, *rounds, *burners, args, os.Stdout)
	stop()
	if err != nil {
		fmt.Fprintln(os.Stderr, "stress:", err)
	}
	if err != nil || failures > 0 {
		os.Exit(1)
	}
}

// run returns how many tests failed in all rounds together. It stops early only if ctx ends or go can't be run.
func run(ctx context.Context, rounds, burners int, args []string, out io.Writer) (failures int, err error) {
	stop := burn(burners)
	defer stop()
	began, done := time.Now(), 0
	defer func() {
		fmt.Fprintf(out, "%d rounds of %d beside %d burners in %v: %d failures\n",
			done, rounds, burners, time.Since(began).Round(time.Second), failures)
	}()
	for done < rounds {
		start := time.Now()
		sum, err := round(ctx, args)
		if err != nil {
			return failures, err
		}
		done++
		failures += len(sum.failed)
		fmt.Fprintf(out, "round %d: %v, %d tests, %d failures\n", done, time.Since(start).Round(time.Second), sum.tests, len(sum.failed))
		for _, f := range sum.failed {
			fmt.Fprintf(out, "  %s\n%s", f.name, f.output)
		}
	}
	return failures, nil
}

// burn keeps n threads busy until the returned function is called.
func burn(n int) (stop func()) {
	before := runtime.GOMAXPROCS(0)
	runtime.GOMAXPROCS(before + n) // room for what reads the tests' output
	var ended atomic.Bool
	var wg sync.WaitGroup
	for range n {
		wg.Go(func() {
			runtime.LockOSThread()
			defer runtime.UnlockOSThread()
			for x := uint64(1); !ended.Load(); x = x*6364136223846793005 + 1442695040888963407 {
			}
		})
	}
	return func() {
		ended.Store(true)
		wg.Wait()
		runtime.GOMAXPROCS(before)
	}
}

// round runs the tests once.
func round(ctx context.Context, args []string) (tally, error) {
	cmd := exec.CommandContext(ctx, "go", append([]string{"test", "-json", "-count=1", "-vet=off", "-timeout=30m"}, args...)...)
	procgroup.Own(cmd)
	cmd.Stderr = os.Stderr
	cmd.WaitDelay = 10 * time.Second
	events, err := cmd.StdoutPipe()
	if err != nil {
		return tally{}, err
	}
	if err := cmd.Start(); err != nil {
		return tally{}, err
	}
	sum, err := readEvents(events)
	waited := cmd.Wait()
	switch {
	case ctx.Err() != nil:
		return tally{}, context.Cause(ctx)
	case err != nil:
		return tally{}, err
	case waited != nil && len(sum.failed) == 0:
		return tally{}, fmt.Errorf("go test failed, and no test did: %w", waited)
	}
	return sum, nil
}
