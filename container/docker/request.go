package docker

import (
	"fmt"
	"maps"
	"strconv"
	"strings"

	"github.com/docker/go-units"
	mobycontainer "github.com/moby/moby/api/types/container"
	"github.com/moby/moby/api/types/mount"
	"github.com/moby/moby/client"
	ocispec "github.com/opencontainers/image-spec/specs-go/v1"

	"slipway/container"
	"slipway/container/supervisor"
)

// The same for every box, whatever it asks for.
const (
	hostname    = "job"
	runSize     = 16 << 20
	tmpInodes   = 100_000
	stopSeconds = 5
	// oomScoreAdj makes the kernel take a box before its worker.
	oomScoreAdj  = 500
	labelWorkdir = "io.slipway.workdir"
)

// engineFacts is what the owner of the engine has set, and what was found out about the engine. Nothing of it
// comes from a job.
type engineFacts struct {
	runtime      string
	cgroupParent string
	volume       string // the supervisor's
	hostsFile    string // on the engine's machine
	cpus         int    // what the engine has; 0: not known
}

// createRequest is the whole of what is asked of the engine for a box. It is pure,
// and the only place that makes a HostConfig: a field that is not set here
// keeps its closed zero value. spec has its defaults filled in.
func createRequest(spec container.Spec, at engineFacts) (client.ContainerCreateOptions, error) {
	platform, err := parsePlatform(spec.Platform)
	if err != nil {
		return client.ContainerCreateOptions{}, err
	}
	return client.ContainerCreateOptions{
		Name:       spec.Name,
		Platform:   platform,
		Config:     config(spec),
		HostConfig: hostConfig(spec, at),
	}, nil
}

func config(spec container.Spec) *mobycontainer.Config {
	stopTimeout := stopSeconds
	return &mobycontainer.Config{
		Hostname:     hostname,
		User:         "0:0",
		AttachStdin:  true,
		AttachStdout: true,
		AttachStderr: true,
		// The dead-man line: stdin ends when the worker's one connection does.
		OpenStdin: true,
		StdinOnce: true,
		// A name without a value takes away the image's variable: these would change the
		// supervisor, a Go program. The job's own variables never stand here, where an engine shows them.
		Env:             []string{"GODEBUG", "GOTRACEBACK", "GOMAXPROCS", "GOGC", "GOMEMLIMIT"},
		Cmd:             []string{},
		Entrypoint:      []string{supervisor.BoxPath},
		Image:           spec.Image,
		WorkingDir:      "/",
		NetworkDisabled: spec.Network == container.NetworkNone,
		Labels:          labels(spec),
		Healthcheck:     &mobycontainer.HealthConfig{Test: []string{"NONE"}},
		StopSignal:      "SIGTERM",
		StopTimeout:     &stopTimeout,
	}
}

// labels are on the box and on its volume, which may outlive it: an engine that is killed loses the one and keeps the other.
func labels(spec container.Spec) map[string]string {
	labels := maps.Clone(spec.Labels)
	if labels == nil {
		labels = map[string]string{}
	}
	labels[container.LabelProduct] = container.Product
	labels[container.LabelBox] = spec.Name
	labels[labelWorkdir] = spec.Workdir
	return labels
}

func hostConfig(spec container.Spec, at engineFacts) *mobycontainer.HostConfig {
	h := &mobycontainer.HostConfig{
		LogConfig:      mobycontainer.LogConfig{Type: "none"},
		NetworkMode:    "none",
		RestartPolicy:  mobycontainer.RestartPolicy{Name: mobycontainer.RestartPolicyDisabled},
		AutoRemove:     true,
		CapDrop:        []string{"ALL"},
		CapAdd:         supervisor.Capabilities(),
		CgroupnsMode:   mobycontainer.CgroupnsModePrivate,
		IpcMode:        mobycontainer.IPCModePrivate,
		OomScoreAdj:    oomScoreAdj,
		ReadonlyRootfs: !spec.HasRelaxation(container.RelaxRootfsWritable),
		SecurityOpt:    securityOpt(spec),
		ShmSize:        spec.Resources.Shm,
		Runtime:        at.runtime,
		Resources:      resources(spec.Resources, at.cpus),
		Mounts:         mounts(spec, at),
		Tmpfs:          tmpfs(spec),
	}
	h.CgroupParent = at.cgroupParent
	if spec.Network == container.NetworkOpen {
		h.NetworkMode = "default"
	}
	if spec.HasRelaxation(container.RelaxRootSteps) {
		h.CapAdd = append(h.CapAdd, "DAC_OVERRIDE", "FOWNER", "FSETID")
	}
	return h
}

func securityOpt(spec container.Spec) []string {
	opts := []string{"no-new-privileges:true"}
	if !spec.HasRelaxation(container.RelaxSeccompDefault) {
		opts = append(opts, "seccomp="+seccompProfile)
	}
	return opts
}

// resources: a memory-backed workspace counts beside the memory. There is no nproc
// limit, since the kernel counts it per user over all containers. More processors than the engine
// has are no limit: it refuses the number, so that the default would not run on a small machine.
func resources(r container.Resources, engineCPUs int) mobycontainer.Resources {
	memory := r.Memory + r.Disk
	limits := []*mobycontainer.Ulimit{
		{Name: "nofile", Soft: r.Files, Hard: r.Files},
		{Name: "core"},
	}
	if r.Disk > 0 {
		size := maxFile(r)
		limits = append(limits, &units.Ulimit{Name: "fsize", Soft: size, Hard: size})
	}
	pids := r.Pids
	cpus := r.CPUs
	if engineCPUs > 0 {
		cpus = min(cpus, float64(engineCPUs))
	}
	return mobycontainer.Resources{
		NanoCPUs:   int64(cpus * 1e9),
		Memory:     memory,
		MemorySwap: memory, // the same number: no swap
		PidsLimit:  &pids,
		Ulimits:    limits,
	}
}

// maxFile bounds the sparse files of a box, which cost nothing in it and all their size in the store. It is more
// than any of its folders in memory holds: else a file that fills one would end its writer by a signal, where "no
// space left on device" tells what is wrong, and one of /tmp would hit the workspace's limit.
func maxFile(r container.Resources) int64 { return max(r.Disk, r.Tmp, r.Shm) + units.MiB }

func mounts(spec container.Spec, at engineFacts) []mount.Mount {
	ms := []mount.Mount{{
		Type: mount.TypeVolume, Source: at.volume, Target: supervisor.MountPath, ReadOnly: true,
		// Without NoCopy an empty volume would be filled from the job's image.
		VolumeOptions: &mount.VolumeOptions{NoCopy: true},
	}}
	if spec.Network == container.NetworkNone && at.hostsFile != "" {
		ms = append(ms, mount.Mount{Type: mount.TypeBind, Source: at.hostsFile, Target: "/etc/hosts", ReadOnly: true})
	}
	if spec.Resources.Disk == 0 {
		// Without a source it is anonymous, and goes with the container. With copying, the engine fills it from the image.
		ms = append(ms, mount.Mount{
			Type: mount.TypeVolume, Target: spec.Workdir,
			VolumeOptions: &mount.VolumeOptions{NoCopy: !spec.FromImage, Labels: labels(spec)},
		})
	}
	return ms
}

// tmpfs: sized and with a bound on inodes, since a plain one has neither. The supervisor sets
// the modes again, because runc 1.1 ignores mode= where the image has the folder.
func tmpfs(spec container.Spec) map[string]string {
	r := spec.Resources
	m := map[string]string{
		"/tmp": fmt.Sprintf("rw,exec,nosuid,nodev,size=%d,nr_inodes=%d,mode=1777", r.Tmp, tmpInodes),
		"/run": fmt.Sprintf("rw,noexec,nosuid,nodev,size=%d,mode=0755", runSize),
	}
	if r.Disk > 0 {
		inodes := max(r.Disk/units.KiB/4, tmpInodes/10)
		m[spec.Workdir] = "rw,exec,nosuid,nodev,size=" + strconv.FormatInt(r.Disk, 10) +
			",nr_inodes=" + strconv.FormatInt(inodes, 10) + ",mode=0777"
	}
	return m
}

// parsePlatform reads os/arch[/variant]. Empty means the engine's own.
func parsePlatform(s string) (*ocispec.Platform, error) {
	if s == "" {
		return nil, nil //nolint:nilnil // no platform is what the engine takes for its own
	}
	parts := strings.Split(s, "/")
	if len(parts) < 2 || len(parts) > 3 || parts[0] != "linux" || parts[1] == "" {
		return nil, fmt.Errorf("%w: platform: %q is not linux/arch[/variant]", container.ErrSpec, s)
	}
	p := &ocispec.Platform{OS: parts[0], Architecture: parts[1]}
	if len(parts) == 3 {
		p.Variant = parts[2]
	}
	return p, nil
}
