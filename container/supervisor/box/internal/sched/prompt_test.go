//go:build linux

package sched

import (
	"fmt"
	"os"
	"os/exec"
	"strings"
	"testing"

	"golang.org/x/sys/unix"

	"slipway/container/supervisor/box/internal/boxtest"
)

func init() {
	boxtest.Role("prompt", func() {
		before := turn(0)
		Prompt()
		child := exec.Command("/proc/self/exe")
		child.Env = append(os.Environ(), "SLIPWAY_TEST_ROLE=turn")
		out, err := child.Output()
		fmt.Println(turn(0), string(out) == fmt.Sprint(before), before > slice, err)
	})
	boxtest.Role("turn", func() { fmt.Print(turn(0)) })
}

// turn is the thread's own, in nanoseconds; 0 where the kernel does not say.
func turn(tid int) uint64 {
	attr, err := unix.SchedGetAttr(tid, 0)
	if err != nil {
		return 0
	}
	return attr.Runtime
}

// The supervisor's turns are short, where the kernel knows turns; its children's are as before.
func TestPrompt(t *testing.T) {
	if turn(0) == 0 {
		t.Skip("needs Linux 6.12")
	}
	want := fmt.Sprint(slice, " true true <nil>")
	if got := strings.TrimSpace(boxtest.Output(t, "prompt")); got != want {
		t.Errorf("own turn, the child's is as before, and longer: got %s, want %s", got, want)
	}
}

func TestReadNames(t *testing.T) {
	if _, err := readNames(os.DevNull); err == nil {
		t.Error("names in a device: got no error")
	}
}
