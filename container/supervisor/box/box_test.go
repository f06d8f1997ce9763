//go:build linux

package main

import (
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"slipway/container/supervisor/wire"
)

func TestParseStat(t *testing.T) {
	tail := " 7 42 43 0 -1 4194560 1 2 3 4 5 6 7 8 20 0 1 0 98765 1 2 3\n"
	tests := []struct {
		in   string
		want process
		ok   bool
	}{
		{"5 (sh) S" + tail, process{5, 7, 42, 98765, 'S', 1}, true},
		{"5 (a) R 1 (b)) Z" + tail, process{5, 7, 42, 98765, 'Z', 1}, true},
		{"5 (\n) 1) T" + tail, process{5, 7, 42, 98765, 'T', 1}, true},
		{"5 (sh S", process{}, false},
		{"5 (sh) S 1 2", process{}, false},
		{"", process{}, false},
	}
	for _, tt := range tests {
		if got, ok := parseStat(5, []byte(tt.in)); ok != tt.ok || ok && got != tt.want {
			t.Errorf("parseStat(%q) = %+v, %v, want %+v, %v", tt.in, got, ok, tt.want, tt.ok)
		}
	}
}

func TestDescendantsFindsSelf(t *testing.T) {
	list, err := descendants(os.Getppid())
	if err != nil || !slices.ContainsFunc(list, func(p process) bool { return p.pid == os.Getpid() }) {
		t.Errorf("this process is not among the descendants of its parent: %v, %v", list, err)
	}
}

func TestParseOOM(t *testing.T) {
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
		if got, ok := parseOOM([]byte(tt.in)); got != tt.want || ok != tt.ok {
			t.Errorf("parseOOM(%q) = %d, %v", tt.in, got, ok)
		}
	}
}

func TestCgroupFiles(t *testing.T) {
	got := cgroupFiles([]byte("12:cpu,cpuacct:/x\n5:memory:/docker/abc\n4:hugetlb,memory:/two\n1:name=systemd:/\n0::/user.slice\n"))
	want := []string{
		"/sys/fs/cgroup/memory/docker/abc/memory.oom_control", "/sys/fs/cgroup/memory/two/memory.oom_control",
		"/sys/fs/cgroup/user.slice/memory.events",
	}
	if !slices.Equal(got, want) {
		t.Errorf("got %q, want %q", got, want)
	}
}

func TestMergeEnv(t *testing.T) {
	base := []string{"A=1", "B=2"}
	got := mergeEnv(base, []string{"B=x", "C=3", "C=4"})
	if want := []string{"A=1", "B=x", "C=4"}; !slices.Equal(got, want) {
		t.Errorf("got %q, want %q", got, want)
	}
	if base[1] != "B=2" {
		t.Error("the base was changed")
	}
}

func TestBaseEnv(t *testing.T) {
	t.Setenv("HOME", "/root")
	t.Setenv("FROM_IMAGE", "yes")
	t.Setenv("PATH", "/image/bin")
	t.Setenv("CI", "")
	if err := os.Unsetenv("CI"); err != nil { // Setenv restores it at the end
		t.Fatal(err)
	}
	env := baseEnv("/tmp", []string{"OWN=1"})
	for key, want := range map[string]string{"HOME": "/tmp", "FROM_IMAGE": "yes", "PATH": "/image/bin", "OWN": "1", "CI": "true"} {
		if got := lookupEnv(env, key); got != want {
			t.Errorf("%s = %q, want %q", key, got, want)
		}
	}
}

func FuzzCheckPath(f *testing.F) {
	for _, s := range []string{".", "a/b", "../a", "a/../b", "/a", "a//b", "a/", "a\x00", "", "..", "a/.."} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, path string) {
		if checkPath(path) != nil {
			return
		}
		if path != "." && (filepath.Clean(path) != path || !filepath.IsLocal(path)) {
			t.Errorf("%q was accepted", path)
		}
	})
}

// Both ways of looking up a folder behave alike.
func TestOpenDir(t *testing.T) {
	root := t.TempDir()
	for _, dir := range []string{"a/b/c", "x"} {
		if err := os.MkdirAll(filepath.Join(root, dir), 0o755); err != nil {
			t.Fatal(err)
		}
	}
	for name, target := range map[string]string{"link": "a", "a/up": "..", "out": "/etc", "loop": "loop"} {
		if err := os.Symlink(target, filepath.Join(root, name)); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.WriteFile(filepath.Join(root, "file"), nil, 0o644); err != nil {
		t.Fatal(err)
	}
	fd, err := unix.Open(root, unix.O_PATH|unix.O_DIRECTORY, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer unix.Close(fd)
	for _, tr := range []tree{{fd: fd}, newTree(fd)} {
		for path, want := range map[string]error{
			".": nil, "a": nil, "a/b/c": nil, "no": unix.ENOENT, "a/no/c": unix.ENOENT, "file": unix.ENOTDIR, "file/x": unix.ENOTDIR,
			"link": unix.ELOOP, "link/b": unix.ELOOP, "a/up/x": unix.ELOOP, "out": unix.ELOOP, "loop": unix.ELOOP,
		} {
			got, err := tr.openDir(path)
			if err != want {
				t.Errorf("openat2 %v: openDir(%q) = %v, want %v", tr.openat2, path, err, want)
			}
			if err == nil {
				_ = unix.Close(got)
			}
		}
	}
}

func TestRemover(t *testing.T) {
	root := t.TempDir()
	fd, err := unix.Open(root, unix.O_RDONLY|unix.O_DIRECTORY, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer unix.Close(fd)
	outside := filepath.Join(t.TempDir(), "outside")
	if err := os.WriteFile(outside, nil, 0o644); err != nil {
		t.Fatal(err)
	}
	for i := range 20 {
		dir := filepath.Join(root, "top", "d"+strconv.Itoa(i), strings.Repeat("e/", i)+"f")
		if err := os.MkdirAll(dir, 0o755); err != nil {
			t.Fatal(err)
		}
		for _, name := range []string{"a", "b", ".slipway-removed-1"} {
			if err := os.WriteFile(filepath.Join(dir, name), nil, 0o444); err != nil {
				t.Fatal(err)
			}
		}
		if err := os.Symlink(outside, filepath.Join(dir, "l")); err != nil {
			t.Fatal(err)
		}
		if err := os.Chmod(dir, 0o500); err != nil {
			t.Fatal(err)
		}
	}
	r := &remover{until: time.Now().Add(time.Minute)}
	if err := r.remove(fd, "top"); err != nil {
		t.Errorf("remove: %v", err)
	}
	if err := r.remove(fd, "top"); err != nil {
		t.Errorf("remove again: %v", err)
	}
	if list, _ := os.ReadDir(root); len(list) != 0 {
		t.Errorf("left: %v", list)
	}
	if _, err := os.Stat(outside); err != nil {
		t.Errorf("a link was followed: %v", err)
	}
	late := &remover{until: time.Now().Add(-time.Second)}
	if err := os.MkdirAll(filepath.Join(root, "x/y"), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := late.remove(fd, "x"); err == nil {
		t.Error("no error although the time was over")
	}
}

func TestStatusOf(t *testing.T) {
	for err, want := range map[error]wire.Code{
		nil: wire.CodeOK, unix.ENOENT: wire.CodeNotFound, unix.ENOSPC: wire.CodeNoSpace, unix.EDQUOT: wire.CodeNoSpace,
		unix.EACCES: wire.CodePermission, unix.ELOOP: wire.CodePath, unix.EIO: wire.CodeOther, unix.EISDIR: wire.CodeExists,
	} {
		if got := statusOf("p", err); got.Code != want {
			t.Errorf("statusOf(%v) = %d, want %d", err, got.Code, want)
		}
	}
}

// Files in memory have no change time that means anything; others have theirs.
func TestChangeTime(t *testing.T) {
	for root, memory := range map[string]bool{"/dev/shm": true, "/proc/self": false} {
		fd, err := unix.Open(root, unix.O_PATH|unix.O_DIRECTORY, 0)
		if err != nil {
			t.Fatal(err)
		}
		defer unix.Close(fd)
		info, err := newTree(fd).statAt(fd, ".", ".")
		if err != nil || (info.ChangeTime == 0) != memory {
			t.Errorf("%s: got change time %d, %v; unknown: want %t", root, info.ChangeTime, err, memory)
		}
	}
}
