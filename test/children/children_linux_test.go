package children

import (
	"os"
	"os/exec"
	"slices"
	"testing"
)

func TestOf(t *testing.T) {
	cmd := exec.Command("sleep", "600")
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	if got := Of(os.Getpid()); !slices.Contains(got, cmd.Process.Pid) {
		t.Errorf("got %v, want %d among them", got, cmd.Process.Pid)
	}
	_ = cmd.Process.Kill()
	_ = cmd.Wait()
	if got := Of(os.Getpid()); slices.Contains(got, cmd.Process.Pid) {
		t.Errorf("got %v, want %d no more", got, cmd.Process.Pid)
	}
}
