//go:build linux

package cgroup

import (
	"os"
	"path/filepath"
	"slices"
	"testing"
)

func TestParse(t *testing.T) {
	tests := []struct {
		in, key string
		want    int64
		ok      bool
	}{
		{"oom_kill_disable 0\nunder_oom 0\noom_kill 3\n", "oom_kill", 3, true},
		{"low 0\nhigh 0\nmax 5\noom 2\noom_kill 1\noom_group_kill 0\n", "oom_kill", 1, true},
		{"oom_kill_disable 0\nunder_oom 0\n", "oom_kill", 0, false},
		{"oom_kill x\n", "oom_kill", 0, false},
		{"max 7\n", "max", 7, true},
		{"", "max", 0, false},
	}
	for _, tt := range tests {
		if got, ok := parse([]byte(tt.in), tt.key); got != tt.want || ok != tt.ok {
			t.Errorf("parse(%q, %q) = %d, %v, want %d, %v", tt.in, tt.key, got, ok, tt.want, tt.ok)
		}
	}
}

func TestFiles(t *testing.T) {
	// The root of a mount is not named: it is looked at in any case.
	memory := source{controller: "memory", v1: "one", v2: "two"}
	got := memory.files([]byte("12:cpu,cpuacct:/x\n5:memory:/docker/abc\n4:hugetlb,memory:/two\n3:memory:/\n2:no path\n1:name=systemd:/\n0::/\n0::/user.slice\n"))
	want := []string{
		"/sys/fs/cgroup/memory/docker/abc/one", "/sys/fs/cgroup/memory/two/one",
		"/sys/fs/cgroup/user.slice/two",
	}
	if !slices.Equal(got, want) {
		t.Errorf("got %q, want %q", got, want)
	}
}

func TestCounterOfFile(t *testing.T) {
	dir := t.TempDir()
	missing, other, events := filepath.Join(dir, "no"), filepath.Join(dir, "other"), filepath.Join(dir, "events")
	write := func(path, text string) {
		t.Helper()
		if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	write(other, "under_oom 0\n")
	write(events, "oom 2\noom_kill 2\n")
	c := openFirst([]string{missing, other, events}, "oom_kill")
	if got := c.Count(); got != 2 {
		t.Errorf("Count: got %d, want 2: of the first file that has the line", got)
	}
	write(events, "oom 4\noom_kill 3\n")
	if got := c.Count(); got != 3 {
		t.Errorf("Count after another kill: got %d, want 3", got)
	}
	if got := openFirst([]string{missing, other}, "oom_kill").Count(); got != 0 {
		t.Errorf("Count without a counter: got %d, want 0", got)
	}
}
