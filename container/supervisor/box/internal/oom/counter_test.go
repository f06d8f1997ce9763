//go:build linux

package oom

import (
	"slices"
	"testing"
)

func TestParseKills(t *testing.T) {
	tests := []struct {
		in   string
		want int64
		ok   bool
	}{
		{"oom_kill_disable 0\nunder_oom 0\noom_kill 3\n", 3, true},
		{"low 0\nhigh 0\nmax 5\noom 2\noom_kill 1\noom_group_kill 0\n", 1, true},
		{"oom_kill_disable 0\nunder_oom 0\n", 0, false},
		{"oom_kill x\n", 0, false},
	}
	for _, tt := range tests {
		if got, ok := parseKills([]byte(tt.in)); got != tt.want || ok != tt.ok {
			t.Errorf("parseKills(%q) = %d, %v, want %d, %v", tt.in, got, ok, tt.want, tt.ok)
		}
	}
}

func TestCgroupFiles(t *testing.T) {
	// The root of a mount is not named: it is looked at in any case.
	got := cgroupFiles([]byte("12:cpu,cpuacct:/x\n5:memory:/docker/abc\n4:hugetlb,memory:/two\n3:memory:/\n2:no path\n1:name=systemd:/\n0::/\n0::/user.slice\n"))
	want := []string{
		"/sys/fs/cgroup/memory/docker/abc/memory.oom_control", "/sys/fs/cgroup/memory/two/memory.oom_control",
		"/sys/fs/cgroup/user.slice/memory.events",
	}
	if !slices.Equal(got, want) {
		t.Errorf("got %q, want %q", got, want)
	}
}
