//go:build linux

package oom

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"golang.org/x/sys/unix"

	"slipway/container/supervisor/box/internal/boxtest"
	"slipway/container/supervisor/box/internal/cgroup"
	"slipway/test/eventually"
)

// memoryCgroup makes a cgroup with a limit of memory, and returns how to run a command in it. It skips t where
// that is not possible.
func memoryCgroup(t *testing.T, limit int) func(*exec.Cmd) {
	t.Helper()
	boxtest.NeedsRoot(t)
	name := "slipway-test-" + strconv.Itoa(os.Getpid())
	for root, file := range map[string]string{"/sys/fs/cgroup/memory": "memory.limit_in_bytes", "/sys/fs/cgroup": "memory.max"} {
		dir := filepath.Join(root, name)
		var fs unix.Statfs_t
		if unix.Statfs(root, &fs) != nil || fs.Type != unix.CGROUP_SUPER_MAGIC && fs.Type != unix.CGROUP2_SUPER_MAGIC {
			continue // with version 1, /sys/fs/cgroup is a tmpfs, in which a folder limits nothing
		}
		if os.Mkdir(dir, 0o755) != nil {
			continue
		}
		t.Cleanup(func() {
			eventually.True(t, eventually.Patience, "the cgroup can be removed", func() bool { return os.Remove(dir) == nil })
		})
		if os.WriteFile(filepath.Join(dir, file), []byte(strconv.Itoa(limit)), 0o644) != nil {
			continue
		}
		return func(cmd *exec.Cmd) {
			cmd.Args = append([]string{"sh", "-c", `echo $$ > "$0/cgroup.procs" && exec "$@"`, dir, cmd.Path}, cmd.Args[1:]...)
			cmd.Path = "/bin/sh"
		}
	}
	t.Skip("needs a memory cgroup that can be written")
	return nil
}

func init() {
	// A process whose child takes too much memory. It prints the counter before and after.
	boxtest.Role("hungry", func() {
		c, s := cgroup.OpenKills(), OpenStepScore()
		before := c.Count()
		s.Raise()
		err := exec.Command("/bin/sh", "-c", "x=$(head -c 200000000 /dev/zero | tr '\\0' x); echo ${#x}").Run()
		s.Restore()
		fmt.Println(before, c.Count() > before, err != nil)
	})
	boxtest.Role("score", func() {
		s := OpenStepScore()
		own := adj()
		s.Raise()
		out, _ := exec.Command("cat", "/proc/self/oom_score_adj").Output()
		s.Restore()
		fmt.Println(own, strings.TrimSpace(string(out)), adj())
	})
}

func adj() string {
	b, _ := os.ReadFile("/proc/self/oom_score_adj")
	return strings.TrimSpace(string(b))
}

// In a cgroup with a limit the kernel kills the command, counts it, and spares the process that runs it.
func TestCommandIsTaken(t *testing.T) {
	if got, want := boxtest.Output(t, "hungry", memoryCgroup(t, 64<<20)), "0 true true\n"; got != want {
		t.Errorf("got %q, want %q: nothing counted before, a kill after, a failed command", got, want)
	}
}

// Commands are likelier to be killed than the process that runs them, which is as likely as before.
func TestScore(t *testing.T) {
	got := strings.Fields(boxtest.Output(t, "score"))
	own, err := strconv.Atoi(got[0])
	if err != nil {
		t.Fatal(err)
	}
	if want := []string{got[0], strconv.Itoa(min(own+commandScore, maxScore)), got[0]}; strings.Join(got, " ") != strings.Join(want, " ") {
		t.Errorf("score of the process, its child, and itself afterwards: got %v, want %v", got, want)
	}
}

func TestScoreAtTheBound(t *testing.T) {
	file, err := os.Create(filepath.Join(t.TempDir(), "score"))
	if err != nil {
		t.Fatal(err)
	}
	defer file.Close()
	newScore(file, 900, stepScore).Raise()
	if b, _ := os.ReadFile(file.Name()); string(b) != "1000" {
		t.Errorf("raised from 900: got %q, want 1000, the kernel's bound", b)
	}
	Score{}.Raise() // a process that may not change it
}
