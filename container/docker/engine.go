package docker

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/containerd/errdefs"
	"github.com/moby/moby/client"

	"slipway/container"
	"slipway/container/supervisor"
	"slipway/internal/hint"
)

// minAPI is the oldest API version that the client speaks: Docker 19.03.
const minAPI = "1.40"

// Engine describes an engine, for people and for doctor commands.
type Engine struct {
	Host    string // its address
	Version string
	API     string // the version that is spoken with it
	OS      string
	Arch    string // as Go names it
	Kernel  string
	Runtime string // the default OCI runtime
	CPUs    int
	Memory  int64 // bytes
	RootDir string
	// Warnings name what works, but not as well as it could, with the way out.
	Warnings []string
}

// Check asks the engine whether it could make a box now. Its error has a hint at what to do.
func (p *Provider) Check(ctx context.Context) error {
	var ping client.PingResult
	err := p.call(ctx, "ask engine", inspectTimeout, func(ctx context.Context) (err error) {
		ping, err = p.cli.Ping(ctx, client.PingOptions{NegotiateAPIVersion: true})
		return err
	})
	if errdefs.IsInvalidArgument(err) || errdefs.IsNotImplemented(err) { // the client's own judgment of its version
		return hint.With(fmt.Errorf("%w: the engine at %s is too old: %w", container.ErrUnsupported, p.cli.DaemonHost(), err),
			"update it to Docker 19.03 (API %s) or newer", minAPI)
	}
	if err != nil {
		return err
	}
	if ping.OSType != "" && ping.OSType != "linux" {
		return hint.With(fmt.Errorf("%w: the engine at %s runs %s containers", container.ErrUnsupported, p.cli.DaemonHost(), ping.OSType),
			"switch it to Linux containers")
	}
	return p.disk.check(ctx)
}

// Engine describes the engine.
func (p *Provider) Engine(ctx context.Context) (Engine, error) {
	if err := p.Check(ctx); err != nil && !errors.Is(err, container.ErrEngineFull) {
		return Engine{}, err
	}
	var v client.ServerVersionResult
	var info client.SystemInfoResult
	err := p.call(ctx, "describe engine", infoTimeout, func(ctx context.Context) (err error) {
		if v, err = p.cli.ServerVersion(ctx, client.ServerVersionOptions{}); err != nil {
			return err
		}
		info, err = p.cli.Info(ctx, client.InfoOptions{})
		return err
	})
	if err != nil {
		return Engine{}, err
	}
	i := info.Info
	e := Engine{
		Host: p.cli.DaemonHost(), Version: v.Version, API: p.cli.ClientVersion(), OS: v.Os, Arch: v.Arch,
		Kernel: i.KernelVersion, Runtime: i.DefaultRuntime, CPUs: i.NCPU, Memory: i.MemTotal, RootDir: i.DockerRootDir,
	}
	e.Warnings = append(shortcomings(i.MemoryLimit, i.PidsLimit, i.CPUCfsQuota, i.SecurityOptions), i.Warnings...)
	if _, err := supervisor.Digest(e.Arch); err != nil {
		e.Warnings = append(e.Warnings, fmt.Sprintf("no supervisor for architecture %s: boxes can't start", e.Arch))
	}
	return e, nil
}

// shortcomings says which limits this engine would silently leave out.
func shortcomings(memory, pids, cpu bool, security []string) []string {
	var out []string
	for _, limit := range []struct {
		ok   bool
		what string
	}{{memory, "memory"}, {pids, "pids"}, {cpu, "cpu"}} {
		if !limit.ok {
			out = append(out, "the kernel has no "+limit.what+" limit for containers: enable its cgroup controller")
		}
	}
	seccomp := false
	for _, s := range security {
		seccomp = seccomp || strings.Contains(s, "seccomp")
	}
	if !seccomp {
		out = append(out, "the engine has no seccomp: steps can make any system call")
	}
	return out
}
