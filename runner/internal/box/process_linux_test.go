package box

import (
	"os"
	"os/exec"
	"strconv"
	"strings"
	"testing"
	"time"

	"slipway/container"
	"slipway/container/mock"
)

// ended returns what a process said of itself that runs no more.
func ended(t *testing.T) (process string) {
	t.Helper()
	cmd := exec.Command("sleep", "600")
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	pid := strconv.Itoa(cmd.Process.Pid)
	start, err := startOf(pid)
	_ = cmd.Process.Kill()
	_ = cmd.Wait()
	if err != nil {
		t.Fatal(err)
	}
	namespace, _, _ := strings.Cut(thisProcess(), "/")
	return namespace + "/" + pid + "/" + start
}

func TestProcessEnded(t *testing.T) {
	t.Parallel()
	me := thisProcess()
	parts := strings.Split(me, "/")
	if len(parts) != 3 || parts[1] != strconv.Itoa(os.Getpid()) {
		t.Fatalf("this process: got %q, want namespace/%d/start", me, os.Getpid())
	}
	for _, tt := range []struct {
		name, process string
		want          bool
	}{
		{"this one", me, false},
		{"one that ended", ended(t), true},
		{"another of the same number", parts[0] + "/" + parts[1] + "/1", true},
		{"of another namespace", "1/" + parts[1] + "/1", false},
		{"without a start", parts[0] + "/1", false},
		{"none", "", false},
		{"nonsense", parts[0] + "/x/y", false},
		{"all processes", parts[0] + "/-1/1", false},
	} {
		if got := processEnded(tt.process, me); got != tt.want {
			t.Errorf("%s, %q: got ended %t, want %t", tt.name, tt.process, got, tt.want)
		}
	}
	if processEnded("/1/1", "") {
		t.Error("a process without a namespace, asked by one without: got ended, want it in doubt")
	}
}

// TestReapable_Orphans: what a worker left whose process has ended goes at once, in any state. Only a worker on the same
// host, since the same start of its kernel, can be known to have ended.
func TestReapable_Orphans(t *testing.T) {
	t.Parallel()
	now := time.Unix(1_000_000, 0)
	f := fleet(mock.New(t), "w1")
	dead := fleet(mock.New(t), "w1").self
	dead.place[container.LabelProcess] = ended(t)
	states := []container.State{container.StateCreated, container.StateRunning, container.StateExited, container.StateRemains}
	for _, tt := range []struct {
		name   string
		change map[string]string
		age    time.Duration
		want   string
	}{
		{"on this host", nil, orphanAge, "its worker has ended"},
		{"on this host, still being made", nil, orphanAge - time.Second, ""},
		{"on another host", map[string]string{container.LabelHost: "elsewhere"}, orphanAge, ""},
		{"before a restart of the host", map[string]string{container.LabelBoot: "before"}, orphanAge, ""},
		{"in another container", map[string]string{container.LabelProcess: "1/1/1"}, orphanAge, ""},
	} {
		for _, state := range states {
			box := container.Info{Name: "slipway-x-1", State: state, CreatedAt: now.Add(-tt.age), Labels: dead.labels()}
			for k, v := range tt.change {
				box.Labels[k] = v
			}
			if got := f.reapable(box, now); got != tt.want {
				t.Errorf("%s, %s: got %q, want %q", tt.name, state, got, tt.want)
			}
		}
	}
}
