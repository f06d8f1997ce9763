package container

import (
	"errors"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"
)

func TestApplyFillsTheClosedDefaults(t *testing.T) {
	got, err := Policy{}.Apply(Spec{Name: "slipway-a-1"})
	if err != nil {
		t.Fatal(err)
	}
	want := Spec{
		Name: "slipway-a-1", User: User{1000, 1000}, Workdir: "/workspace", Network: NetworkNone,
		Resources: Resources{CPUs: 2, Memory: 2 << 30, Pids: 512, Tmp: 256 << 20, Shm: 64 << 20, Files: 8192},
		DeadMan:   20 * time.Second, Lifetime: 25 * time.Hour,
	}
	if !reflect.DeepEqual(got, want) {
		t.Errorf("got %+v, want %+v", got, want)
	}
}

func TestApplyDenies(t *testing.T) {
	base := Spec{Name: "slipway-a-1"}
	tests := []struct {
		name   string
		policy Policy
		change func(*Spec)
		field  string
		key    string
	}{
		{"network", Policy{}, func(s *Spec) { s.Network = NetworkOpen }, "network", "network_open"},
		{"uid 0", Policy{}, func(s *Spec) { s.User = User{0, 5} }, "user", "root_steps"},
		{"gid 0", Policy{}, func(s *Spec) { s.User = User{5, 0} }, "user", "root_steps"},
		{"asked by key", Policy{}, func(s *Spec) { s.Relaxed = []Relaxation{RelaxRootfsWritable} }, "relaxed", "rootfs_writable"},
		{"another is allowed", Policy{Allow: []Relaxation{RelaxRootSteps}}, func(s *Spec) { s.Network = NetworkOpen }, "network", "network_open"},
		{"cpus", Policy{}, func(s *Spec) { s.Resources.CPUs = 8.1 }, "resources.cpus", "max.cpus"},
		{"memory", Policy{}, func(s *Spec) { s.Resources.Memory = 8<<30 + 1 }, "resources.memory", "max.memory"},
		{"own bound", Policy{Max: Resources{Memory: 1 << 30}}, func(s *Spec) { s.Resources.Memory = 2 << 30 }, "resources.memory", "max.memory"},
		{"disk by memory's bound", Policy{Max: Resources{Memory: 1 << 30}}, func(s *Spec) { s.Resources.Disk = 2 << 30 }, "resources.disk", "max.disk"},
		{"pids", Policy{}, func(s *Spec) { s.Resources.Pids = 5000 }, "resources.pids", "max.pids"},
		{"tmp", Policy{}, func(s *Spec) { s.Resources.Tmp = 2 << 30 }, "resources.tmp", "max.tmp"},
		{"shm", Policy{}, func(s *Spec) { s.Resources.Shm = 1 << 30 }, "resources.shm", "max.shm"},
		{"files", Policy{}, func(s *Spec) { s.Resources.Files = 1 << 20 }, "resources.files", "max.files"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			spec := base
			tt.change(&spec)
			_, err := tt.policy.Apply(spec)
			var denied *Denied
			if !errors.As(err, &denied) || !errors.Is(err, ErrDenied) {
				t.Fatalf("got %v, want a *Denied", err)
			}
			if denied.Field != tt.field || denied.Key != tt.key {
				t.Errorf("got field %q key %q, want %q %q", denied.Field, denied.Key, tt.field, tt.key)
			}
		})
	}
}

func TestApplyGrants(t *testing.T) {
	tests := []struct {
		name   string
		policy Policy
		spec   Spec
		want   []Relaxation
		check  func(Spec) bool
	}{
		{
			"asked and allowed",
			Policy{Allow: []Relaxation{RelaxNetworkOpen, RelaxRootSteps}},
			Spec{Network: NetworkOpen},
			[]Relaxation{RelaxNetworkOpen},
			func(s Spec) bool { return s.Network == NetworkOpen },
		},
		{
			"always opens the network of a box that did not ask",
			Policy{Always: []Relaxation{RelaxNetworkOpen}},
			Spec{},
			[]Relaxation{RelaxNetworkOpen},
			func(s Spec) bool { return s.Network == NetworkOpen },
		},
		{
			"allowed but not asked for stays closed",
			Policy{Allow: Relaxations()},
			Spec{},
			nil,
			func(s Spec) bool { return s.Network == NetworkNone && s.User == DefaultUser },
		},
		{
			"root by key",
			Policy{Allow: []Relaxation{RelaxRootSteps}},
			Spec{Relaxed: []Relaxation{RelaxRootSteps}},
			[]Relaxation{RelaxRootSteps},
			func(s Spec) bool { return s.User == (User{}) },
		},
		{
			"a default beyond the bound is cut",
			Policy{Max: Resources{Memory: 1 << 30, CPUs: 1}},
			Spec{},
			nil,
			func(s Spec) bool { return s.Resources.Memory == 1<<30 && s.Resources.CPUs == 1 },
		},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			tt.spec.Name = "slipway-a-1"
			got, err := tt.policy.Apply(tt.spec)
			if err != nil {
				t.Fatal(err)
			}
			if !slices.Equal(got.Relaxed, tt.want) || !tt.check(got) {
				t.Errorf("got %+v, want relaxed %v", got, tt.want)
			}
		})
	}
}

func TestAllowsImage(t *testing.T) {
	hex := strings.Repeat("a1", 32)
	tests := []struct {
		prefix, ref string
		want        bool
	}{
		{"docker.io/library/", "alpine", true},
		{"docker.io/library/", "alpine:3.22", true},
		{"docker.io/library/", "docker.io/alpine", true},
		{"docker.io/library/", "index.docker.io/library/alpine", true},
		{"docker.io/library/", "docker.io/library/alpine@sha256:" + hex, true},
		{"docker.io/library/", "acme/alpine", false},
		{"docker.io/library/", "ghcr.io/library/alpine", false},
		{"docker.io/library/", "docker.io.evil.example/library/alpine", false},
		{"docker.io/library/", "library/../acme/x", false},
		{"docker.io/library/", "sha256:" + hex, false},
		{"docker.io/library/", hex, false},
		{"docker.io/library/", "", false},
		{"docker.io/library/", "alpine@md5:abc", false},
		{"docker.io/library/", "Alpine", false},
		{"ghcr.io/acme", "ghcr.io/acme/tool:1", true},
		{"ghcr.io/acme", "ghcr.io/acme-evil/tool:1", false},
		{"ghcr.io/acme/tool:1", "ghcr.io/acme/tool:1", true},
		{"ghcr.io/acme/tool:1", "ghcr.io/acme/tool:1.2", false},
		{"ghcr.io/acme/tool:1", "ghcr.io/acme/tool:1@sha256:" + hex, true},
		{"localhost:5000/", "localhost:5000/x", true},
		{"localhost:5000/", "localhost:50001/x", false},
	}
	for _, tt := range tests {
		err := Policy{Images: []string{tt.prefix}}.AllowsImage(tt.ref)
		if got := err == nil; got != tt.want {
			t.Errorf("prefix %q, image %q: got %v (%v), want %v", tt.prefix, tt.ref, got, err, tt.want)
		}
		if err != nil && !errors.Is(err, ErrDenied) {
			t.Errorf("image %q: got %v, want ErrDenied", tt.ref, err)
		}
	}
	if err := (Policy{}).AllowsImage("anything/at:all"); err != nil {
		t.Errorf("no list: got %v, want nil", err)
	}
}

// All mistakes of a policy are told at once, each with its key.
func TestPolicyValidateFindsAll(t *testing.T) {
	p := Policy{
		Allow: []Relaxation{RelaxRootSteps, "root"}, Always: []Relaxation{"x"},
		Max:    Resources{CPUs: -1, Memory: 1, Files: 1},
		Images: []string{"ghcr.io/acme/", "alpine", "ghcr.io/Acme/", "index.docker.io/library/", "ghcr.io/a@sha256:12"},
	}
	var all PolicyErrors
	if err := p.Validate(); !errors.As(err, &all) {
		t.Fatalf("got %v, want PolicyErrors", err)
	}
	var keys []string
	for _, e := range all {
		keys = append(keys, e.Key)
	}
	want := []string{"allow[1]", "always[0]", "max.cpus", "max.memory", "max.files", "images[1]", "images[2]", "images[3]"}
	if !slices.Equal(keys, want) {
		t.Errorf("got keys %q, want %q", keys, want)
	}
	for i, part := range map[int]string{0: `"root" is none of`, 6: `"ghcr.io/acme/"`, 7: `an engine calls such a one "docker.io/library/x:latest"`} {
		if !strings.Contains(all[i].Detail, part) {
			t.Errorf("%s: got %q, want it to contain %q", all[i].Key, all[i].Detail, part)
		}
	}
	if err := p.Validate(); strings.Count(err.Error(), "\n") != len(all)-1 {
		t.Errorf("got %q, want a line for each mistake", err)
	}
}

func TestPolicyValidate(t *testing.T) {
	for _, tt := range []struct {
		policy Policy
		key    string
	}{
		{Policy{Allow: []Relaxation{RelaxRootSteps, "privileged"}}, "allow[1]"},
		{Policy{Always: []Relaxation{"x"}, Images: []string{"alpine"}}, "always[0]"},
		{Policy{Images: []string{"docker.io/", "library/alpine"}}, "images[1]"},
		{Policy{Images: []string{"*.io/x"}}, "images[0]"},
		{Policy{Max: Resources{Memory: -1}}, "max.memory"},
	} {
		var wrong *PolicyError
		if err := tt.policy.Validate(); !errors.As(err, &wrong) || wrong.Key != tt.key {
			t.Errorf("%+v: got %v, want a PolicyError of %s", tt.policy, err, tt.key)
		}
	}
}

// FuzzApply: whatever is asked for, what comes out is within the policy, and
// applying the policy again changes nothing.
func FuzzApply(f *testing.F) {
	f.Add("slipway-a-1", "/workspace", 1000, 1000, "none", 1.0, int64(1<<30), int64(100), int64(0), uint8(0), uint8(3), uint8(1))
	f.Add("x", "/w", 0, 0, "open", 0.0, int64(0), int64(0), int64(1<<30), uint8(255), uint8(255), uint8(0))
	f.Fuzz(func(t *testing.T, name, workdir string, uid, gid int, network string, cpus float64, mem, pids, disk int64, ask, allow, always uint8) {
		pick := func(bits uint8) (out []Relaxation) {
			for i, r := range Relaxations() {
				if bits>>i&1 == 1 {
					out = append(out, r)
				}
			}
			return out
		}
		p := Policy{Allow: pick(allow), Always: pick(always)}
		in := Spec{
			Name: name, Workdir: workdir, User: User{uid, gid}, Network: Network(network), Relaxed: pick(ask),
			Resources: Resources{CPUs: cpus, Memory: mem, Pids: pids, Disk: disk},
		}
		out, err := p.Apply(in)
		if err != nil {
			if !errors.Is(err, ErrSpec) && !errors.Is(err, ErrDenied) {
				t.Fatalf("untyped error %v", err)
			}
			return
		}
		for _, r := range out.Relaxed {
			if !slices.Contains(p.Allow, r) && !slices.Contains(p.Always, r) {
				t.Fatalf("granted %s, which the policy does not know", r)
			}
		}
		if out.Network == NetworkOpen && !out.HasRelaxation(RelaxNetworkOpen) || isRoot(out.User) && !out.HasRelaxation(RelaxRootSteps) {
			t.Fatalf("open without the key: %+v", out)
		}
		r, b := out.Resources, p.bounds()
		if !(r.CPUs > 0 && r.CPUs <= b.CPUs) || r.Memory <= 0 || r.Memory > b.Memory || r.Pids <= 0 || r.Pids > b.Pids || r.Disk > b.Disk {
			t.Fatalf("resources %+v are outside %+v", r, b)
		}
		again, err := p.Apply(out)
		if err != nil || !reflect.DeepEqual(again, out) {
			t.Fatalf("applied twice: %+v, %v; want %+v", again, err, out)
		}
	})
}
