package container

import (
	"errors"
	"math"
	"strings"
	"testing"
)

func TestValidateNamesTheField(t *testing.T) {
	tests := []struct {
		field  string
		change func(*Spec)
	}{
		{"name", func(s *Spec) { s.Name = "" }},
		{"name", func(s *Spec) { s.Name = "Slipway" }},
		{"name", func(s *Spec) { s.Name = "a/../b" }},
		{"name", func(s *Spec) { s.Name = "a\n" }},
		{"workdir", func(s *Spec) { s.Workdir = "relative" }},
		{"workdir", func(s *Spec) { s.Workdir = "/" }},
		{"workdir", func(s *Spec) { s.Workdir = "/work/../etc" }},
		{"workdir", func(s *Spec) { s.Workdir = "/proc/self/fd/8" }},
		{"workdir", func(s *Spec) { s.Workdir = "/sys" }},
		{"workdir", func(s *Spec) { s.Workdir = "/.slipway" }},
		{"workdir", func(s *Spec) { s.Workdir = "/work:ro" }},
		{"from_image", func(s *Spec) { s.FromImage, s.Resources.Disk = true, 1<<30 }},
		{"user", func(s *Spec) { s.User = User{-1, 1} }},
		{"network", func(s *Spec) { s.Network = "host" }},
		{"relaxed", func(s *Spec) { s.Relaxed = []Relaxation{"privileged"} }},
		{"env", func(s *Spec) { s.Env = map[string]string{"A=B": "c"} }},
		{"env", func(s *Spec) { s.Env = map[string]string{"A": "c\x00"} }},
		{"labels", func(s *Spec) { s.Labels = map[string]string{"": "x"} }},
		{"resources.cpus", func(s *Spec) { s.Resources.CPUs = math.NaN() }},
		{"resources.cpus", func(s *Spec) { s.Resources.CPUs = math.Inf(1) }},
		{"resources.cpus", func(s *Spec) { s.Resources.CPUs = -1 }},
		{"resources.memory", func(s *Spec) { s.Resources.Memory = 1 }},
		{"resources.memory", func(s *Spec) { s.Resources.Memory = -1 }},
		{"resources.pids", func(s *Spec) { s.Resources.Pids = 3 }},
		{"dead_man", func(s *Spec) { s.DeadMan = -1 }},
	}
	for _, tt := range tests {
		s := Spec{Name: "slipway-a-1"}
		tt.change(&s)
		_, err := Policy{Allow: Relaxations()}.Apply(s)
		if !errors.Is(err, ErrSpec) || !strings.Contains(err.Error(), tt.field) {
			t.Errorf("%+v: got %v, want ErrSpec naming %s", s, err, tt.field)
		}
	}
}

func TestWithDefaultsIsClosed(t *testing.T) {
	_, err := Spec{Name: "a", Network: NetworkOpen}.WithDefaults()
	if !errors.Is(err, ErrDenied) {
		t.Errorf("open network without the relaxation: got %v, want ErrDenied", err)
	}
}

func TestCheckCommand(t *testing.T) {
	closed := Spec{Name: "a"}
	root := Spec{Name: "a", Relaxed: []Relaxation{RelaxRootSteps}}
	tests := []struct {
		name string
		spec Spec
		cmd  Command
		want error
	}{
		{"plain", closed, Command{Args: []string{"true"}}, nil},
		{"no program", closed, Command{}, ErrSpec},
		{"zero byte", closed, Command{Args: []string{"a\x00"}}, ErrSpec},
		{"bad variable", closed, Command{Args: []string{"a"}, Env: map[string]string{"": "x"}}, ErrSpec},
		{"negative timeout", closed, Command{Args: []string{"a"}, Timeout: -1}, ErrSpec},
		{"root, not granted", closed, Command{Args: []string{"a"}, User: &User{}}, ErrDenied},
		{"root, granted", root, Command{Args: []string{"a"}, User: &User{}}, nil},
		{"another user", closed, Command{Args: []string{"a"}, User: &User{7, 7}}, nil},
	}
	for _, tt := range tests {
		if err := tt.spec.CheckCommand(tt.cmd); !errors.Is(err, tt.want) {
			t.Errorf("%s: got %v, want %v", tt.name, err, tt.want)
		}
	}
}
