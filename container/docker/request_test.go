package docker

import (
	"encoding/json"
	"errors"
	"fmt"
	"reflect"
	"slices"
	"strings"
	"testing"

	mobycontainer "github.com/moby/moby/api/types/container"
	"github.com/moby/moby/api/types/mount"
	"github.com/moby/moby/client"

	"slipway/container"
)

var testFacts = engineFacts{volume: "slipway-supervisor-0123456789ab", hostsFile: "/var/lib/docker/volumes/x/_data/hosts"}

func request(t testing.TB, spec container.Spec) client.ContainerCreateOptions {
	t.Helper()
	spec, err := spec.WithDefaults()
	if err != nil {
		t.Fatal(err)
	}
	req, err := createRequest(spec, testFacts)
	if err != nil {
		t.Fatal(err)
	}
	return req
}

func TestCreateRequestGolden(t *testing.T) {
	tests := []struct {
		name string
		spec container.Spec
	}{
		{"closed", container.Spec{
			Name: "slipway-job-1", Image: "sha256:feed", Env: map[string]string{"TOKEN": "never in the engine's view"},
			Labels: map[string]string{container.LabelJob: "job", container.LabelAttempt: "1"},
		}},
		{"open", container.Spec{
			Name: "slipway-job-2", Image: "sha256:feed", Platform: "linux/arm64/v8", Workdir: "/src",
			Resources: container.Resources{Disk: 1 << 30, CPUs: 0.5}, Relaxed: container.Relaxations(),
		}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			req := request(t, tt.spec)
			for i, o := range req.HostConfig.SecurityOpt {
				if strings.HasPrefix(o, "seccomp=") {
					req.HostConfig.SecurityOpt[i] = fmt.Sprintf("seccomp=<%v>", o == "seccomp="+seccompProfile)
				}
			}
			got, err := json.MarshalIndent(req, "", "  ")
			if err != nil {
				t.Fatal(err)
			}
			golden(t, "testdata/create-"+tt.name+".json", append(got, '\n'))
		})
	}
}

// invariants lists what is wrong with a request, whatever the job asked for. It
// compares every field of HostConfig, so that one that a later version of the API adds is seen.
func invariants(req client.ContainerCreateOptions, spec container.Spec) error {
	h, c := req.HostConfig, req.Config
	var errs []error
	must := func(ok bool, what string) {
		if !ok {
			errs = append(errs, errors.New(what))
		}
	}
	open, root := spec.HasRelaxation(container.RelaxNetworkOpen), spec.HasRelaxation(container.RelaxRootSteps)
	caps := []string{"CHOWN", "KILL", "SETUID", "SETGID"}
	if root {
		caps = append(caps, "DAC_OVERRIDE", "FOWNER", "FSETID")
	}
	must(slices.Equal(h.CapAdd, caps), "CapAdd")
	must(slices.Equal(h.CapDrop, []string{"ALL"}), "CapDrop")
	must(slices.Contains(h.SecurityOpt, "no-new-privileges:true"), "SecurityOpt: privileges")
	must(len(h.SecurityOpt) == 1 && spec.HasRelaxation(container.RelaxSeccompDefault) ||
		len(h.SecurityOpt) == 2 && h.SecurityOpt[1] == "seccomp="+seccompProfile, "SecurityOpt: seccomp")
	must(h.ReadonlyRootfs || spec.HasRelaxation(container.RelaxRootfsWritable), "ReadonlyRootfs")
	must(c.NetworkDisabled && h.NetworkMode == "none" || open && h.NetworkMode == "default", "NetworkMode")
	must(h.AutoRemove && h.RestartPolicy == (mobycontainer.RestartPolicy{Name: "no"}), "AutoRemove, RestartPolicy")
	must(h.LogConfig.Type == "none" && len(h.LogConfig.Config) == 0, "LogConfig")
	must(h.IpcMode == "private" && h.CgroupnsMode == "private", "IpcMode, CgroupnsMode")
	must(h.Memory > 0 && h.Memory == h.MemorySwap && h.NanoCPUs > 0 && h.PidsLimit != nil && *h.PidsLimit > 0, "limits")
	must(h.OomScoreAdj == oomScoreAdj && h.ShmSize > 0, "OomScoreAdj, ShmSize")
	must(len(h.Ulimits) >= 2 && !slices.ContainsFunc(h.Ulimits, func(u *mobycontainer.Ulimit) bool { return u.Name == "nproc" }), "Ulimits")
	must(h.Runtime == "" && h.CgroupParent == "", "Runtime, CgroupParent: the owner's, not the job's")
	errs = append(errs, mountInvariants(h, spec)...)

	must(c.OpenStdin && c.StdinOnce && c.AttachStdin && !c.Tty, "dead-man line")
	must(c.User == "0:0" && c.Image == spec.Image && slices.Equal(c.Entrypoint, []string{"/.slipway/box"}) && len(c.Cmd) == 0, "program")
	must(c.Hostname == "job" && c.WorkingDir == "/" && c.Labels[container.LabelProduct] == container.Product, "names")
	must(c.Healthcheck != nil && slices.Equal(c.Healthcheck.Test, []string{"NONE"}), "Healthcheck")
	must(len(c.Volumes) == 0 && len(c.ExposedPorts) == 0, "Volumes, ExposedPorts")
	for _, e := range c.Env {
		must(!strings.Contains(e, "="), "Env: "+e)
	}
	for _, f := range setFields(*h) {
		must(slices.Contains(known, f), "HostConfig."+f+" is set")
	}
	for _, f := range setFields(h.Resources) {
		must(slices.Contains(knownResources, f), "Resources."+f+" is set")
	}
	return errors.Join(errs...)
}

var known = []string{
	"LogConfig", "NetworkMode", "RestartPolicy", "AutoRemove", "CapDrop", "CapAdd", "CgroupnsMode", "IpcMode", "OomScoreAdj",
	"ReadonlyRootfs", "SecurityOpt", "ShmSize", "Tmpfs", "Mounts", "Resources",
}

var knownResources = []string{"NanoCPUs", "Memory", "MemorySwap", "PidsLimit", "Ulimits"}

func mountInvariants(h *mobycontainer.HostConfig, spec container.Spec) (errs []error) {
	targets := map[string]bool{}
	for _, m := range h.Mounts {
		if targets[m.Target] {
			errs = append(errs, fmt.Errorf("%s is mounted twice", m.Target))
		}
		targets[m.Target] = true
		switch m.Target {
		case "/.slipway":
			if m.Type != mount.TypeVolume || !m.ReadOnly || m.Source != testFacts.volume || m.VolumeOptions == nil || !m.VolumeOptions.NoCopy {
				errs = append(errs, errors.New("supervisor's mount"))
			}
		case "/etc/hosts":
			if m.Type != mount.TypeBind || !m.ReadOnly || m.Source != testFacts.hostsFile {
				errs = append(errs, errors.New("hosts mount"))
			}
		case spec.Workdir:
			if m.Type != mount.TypeVolume || m.Source != "" || m.VolumeOptions == nil || m.VolumeOptions.NoCopy == spec.FromImage || m.VolumeOptions.DriverConfig != nil {
				errs = append(errs, errors.New("workspace mount"))
			}
		default:
			errs = append(errs, fmt.Errorf("mount at %s", m.Target))
		}
	}
	if h.Tmpfs["/tmp"] == "" || h.Tmpfs["/run"] == "" || !targets["/.slipway"] || targets[spec.Workdir] == (h.Tmpfs[spec.Workdir] != "") {
		errs = append(errs, errors.New("a mount is missing"))
	}
	for target, opts := range h.Tmpfs {
		if targets[target] {
			errs = append(errs, fmt.Errorf("%s is mounted twice", target))
		}
		for _, o := range []string{"nosuid", "nodev", "size="} {
			if !strings.Contains(opts, o) {
				errs = append(errs, fmt.Errorf("tmpfs %s lacks %s", target, o))
			}
		}
	}
	return errs
}

// setFields lists the fields of a struct that are not zero; a slice that is empty and not nil counts,
// since an empty MaskedPaths takes all masks away.
func setFields(v any) (out []string) {
	rv := reflect.ValueOf(v)
	for i := range rv.NumField() {
		if !rv.Field(i).IsZero() {
			out = append(out, rv.Type().Field(i).Name)
		}
	}
	return out
}

// TestInvariantsSeeEveryChange sets each field of HostConfig and Resources in turn
// to something else: the checker must object.
func TestInvariantsSeeEveryChange(t *testing.T) {
	spec, err := container.Spec{Name: "slipway-job-1", Image: "sha256:feed"}.WithDefaults()
	if err != nil {
		t.Fatal(err)
	}
	if err := invariants(request(t, spec), spec); err != nil {
		t.Fatalf("the closed request: %v", err)
	}
	mutate := func(name string, pick func(client.ContainerCreateOptions) reflect.Value, i int) {
		req := request(t, spec)
		f := pick(req).Field(i)
		if !change(f) {
			t.Errorf("%s: don't know how to change a %s", name, f.Type())
			return
		}
		if invariants(req, spec) == nil {
			t.Errorf("%s changed to %v: no objection", name, f.Interface())
		}
	}
	host := func(r client.ContainerCreateOptions) reflect.Value { return reflect.ValueOf(r.HostConfig).Elem() }
	res := func(r client.ContainerCreateOptions) reflect.Value {
		return reflect.ValueOf(&r.HostConfig.Resources).Elem()
	}
	for i := range reflect.TypeFor[mobycontainer.HostConfig]().NumField() {
		if name := reflect.TypeFor[mobycontainer.HostConfig]().Field(i).Name; name != "Resources" {
			mutate(name, host, i)
		}
	}
	// Any number within the policy is right for these, so that only none at all is wrong.
	for i := range reflect.TypeFor[mobycontainer.Resources]().NumField() {
		mutate("Resources."+reflect.TypeFor[mobycontainer.Resources]().Field(i).Name, res, i)
	}
}

// change gives v another value: zero if it was set, else something.
func change(v reflect.Value) bool {
	if !v.IsZero() && v.Kind() != reflect.Map && v.Kind() != reflect.Slice {
		v.SetZero()
		return true
	}
	switch v.Kind() {
	case reflect.Bool:
		v.SetBool(true)
	case reflect.String:
		v.SetString("host")
	case reflect.Int, reflect.Int64:
		v.SetInt(7)
	case reflect.Uint, reflect.Uint16, reflect.Uint32, reflect.Uint64:
		v.SetUint(7)
	case reflect.Slice: // empty, but there: that is how masks are taken away
		v.Set(reflect.MakeSlice(v.Type(), 0, 0))
	case reflect.Map:
		m := reflect.MakeMap(v.Type())
		if v.Type().Elem().Kind() == reflect.String {
			m.SetMapIndex(reflect.ValueOf("/x").Convert(v.Type().Key()), reflect.ValueOf("rw").Convert(v.Type().Elem()))
		}
		v.Set(m)
	case reflect.Pointer:
		v.Set(reflect.New(v.Type().Elem()))
	case reflect.Array:
		v.Index(0).SetUint(7)
	case reflect.Struct:
		return change(v.Field(0))
	default:
		return false
	}
	return true
}

func FuzzCreateRequest(f *testing.F) {
	f.Add("slipway-a-1", "img", "linux/amd64", "/workspace", "K", "v", int64(0), int64(0), 0.0, uint8(0))
	f.Add("a", "i:1", "", "/mnt/--privileged", "PATH", "x,exec", int64(1<<30), int64(1<<20), 1.5, uint8(15))
	f.Fuzz(func(t *testing.T, name, image, platform, workdir, key, value string, mem, disk int64, cpus float64, relaxed uint8) {
		spec := container.Spec{
			Name: name, Image: image, Platform: platform, Workdir: workdir,
			Env: map[string]string{key: value}, Labels: map[string]string{key: value, container.LabelProduct: value},
			Resources: container.Resources{Memory: mem, Disk: disk, CPUs: cpus},
		}
		for i, r := range container.Relaxations() {
			if relaxed>>i&1 == 1 {
				spec.Relaxed = append(spec.Relaxed, r)
			}
		}
		spec, err := container.Policy{Allow: container.Relaxations()}.Apply(spec)
		if err != nil {
			return
		}
		req, err := createRequest(spec, testFacts)
		if err != nil {
			if !errors.Is(err, container.ErrSpec) {
				t.Fatalf("untyped error %v", err)
			}
			return
		}
		if err := invariants(req, spec); err != nil {
			t.Fatal(err)
		}
	})
}

// An engine refuses more processors than it has; every job would fail on a small machine.
func TestCPUsFitTheEngine(t *testing.T) {
	for _, tt := range []struct {
		asked  float64
		engine int
		want   int64
	}{{2, 1, 1e9}, {0.5, 1, 5e8}, {2, 2, 2e9}, {100, 0, 100e9}} {
		if got := resources(container.Resources{CPUs: tt.asked}, tt.engine).NanoCPUs; got != tt.want {
			t.Errorf("%v asked of an engine with %d: NanoCPUs = %d, want %d", tt.asked, tt.engine, got, tt.want)
		}
	}
}
