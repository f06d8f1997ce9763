//go:build unix

package procgroup

import (
	"bufio"
	"context"
	"os/exec"
	"testing"
	"time"
)

// TestOwn: a grandchild that holds the pipe ends with the context, so that reading the pipe ends.
func TestOwn(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	cmd := exec.CommandContext(ctx, "sh", "-c", "sleep 1000 & echo started; wait")
	Own(cmd)
	pipe, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	lines := bufio.NewScanner(pipe)
	if !lines.Scan() {
		t.Fatal("got no line from the shell")
	}
	cancel()
	ended := make(chan bool, 1)
	go func() { ended <- lines.Scan() }()
	select {
	case more := <-ended:
		if more {
			t.Errorf("got the line %q, want the end", lines.Text())
		}
	case <-time.After(30 * time.Second):
		t.Error("the grandchild still holds the pipe 30s after the context ended")
	}
	if err := cmd.Wait(); err == nil {
		t.Error("got no error of a program that was killed")
	}
}
