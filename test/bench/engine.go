package main

import (
	"context"
	"fmt"
	"io"
	"os/exec"
	"strings"
	"time"

	mobycontainer "github.com/moby/moby/api/types/container"
	"github.com/moby/moby/client"

	"slipway/container"
)

// program is what the step rivals run: by its path, since a search through PATH costs a
// round trip per folder on a root file system in user space, whoever makes it.
const program = "/bin/true"

// stepSection compares one command in a running box with the two other ways to run one.
func stepSection(ctx context.Context, p *parts, rounds int) (section, error) {
	box, info, err := p.box(ctx)
	if err != nil {
		return section{}, err
	}
	return section{
		name: "step", rounds: rounds * 3,
		rivals: []rival{
			{"slipway step", func(ctx context.Context) (time.Duration, error) { return timed(func() error { return step(ctx, box) }) }},
			{"docker exec (API)", func(ctx context.Context) (time.Duration, error) {
				return timed(func() error { return p.dockerExec(ctx, info.ID) })
			}},
			{"fork/exec on the host", func(ctx context.Context) (time.Duration, error) {
				return timed(exec.CommandContext(ctx, program).Run)
			}},
		},
		goals: []goal{{"docker exec (API)", 0.05}},
	}, nil
}

// coldSection compares a whole job with a container made of the very same HostConfig.
func coldSection(_ context.Context, p *parts, rounds int) (section, error) {
	return section{
		name: "cold", rounds: rounds,
		rivals: []rival{
			{"slipway job, queue to removal", func(ctx context.Context) (time.Duration, error) { return p.runJob(ctx, 1) }},
			{"create+start+wait+remove (API)", p.rawContainer},
		},
		goals: []goal{{"create+start+wait+remove (API)", 1.15}},
	}, nil
}

// tenSection compares ten steps with what a script around the CLI does.
func tenSection(_ context.Context, p *parts, rounds int) (section, error) {
	return section{
		name: "ten", rounds: max(rounds/3, 3),
		rivals: []rival{
			{"slipway job of ten steps", func(ctx context.Context) (time.Duration, error) { return p.runJob(ctx, 10) }},
			{"docker run -d, 10 exec, rm -f", func(ctx context.Context) (time.Duration, error) {
				return timed(func() error { return cliTen(ctx) })
			}},
		},
		goals: []goal{{"docker run -d, 10 exec, rm -f", 0.35}},
	}, nil
}

func timed(f func() error) (time.Duration, error) {
	begun := time.Now()
	err := f()
	return time.Since(begun), err
}

func step(ctx context.Context, box container.Sandbox) error {
	exit, err := box.Exec(ctx, container.Command{Args: []string{program}})
	if err == nil && !exit.Success() {
		err = fmt.Errorf("true: exit %+v", exit)
	}
	return err
}

// dockerExec runs `true` by the engine's own exec, until its exit code is known.
func (p *parts) dockerExec(ctx context.Context, id string) error {
	created, err := p.api.ExecCreate(ctx, id, client.ExecCreateOptions{Cmd: []string{program}, User: "1000:1000", AttachStdout: true, AttachStderr: true})
	if err != nil {
		return err
	}
	att, err := p.api.ExecAttach(ctx, created.ID, client.ExecAttachOptions{})
	if err != nil {
		return err
	}
	defer att.Close()
	if _, err := io.Copy(io.Discard, att.Reader); err != nil {
		return err
	}
	res, err := p.api.ExecInspect(ctx, created.ID, client.ExecInspectOptions{})
	if err == nil && (res.Running || res.ExitCode != 0) {
		err = fmt.Errorf("docker exec: %+v", res)
	}
	return err
}

// rawContainer runs `true` as process 1 of a container with the HostConfig of one of our boxes.
func (p *parts) rawContainer(ctx context.Context) (time.Duration, error) {
	config, host, err := p.likeABox(ctx)
	if err != nil {
		return 0, err
	}
	return timed(func() error {
		c, err := p.api.ContainerCreate(ctx, client.ContainerCreateOptions{Config: config, HostConfig: host})
		if err != nil {
			return err
		}
		wait := p.api.ContainerWait(ctx, c.ID, client.ContainerWaitOptions{Condition: mobycontainer.WaitConditionNextExit})
		if _, err := p.api.ContainerStart(ctx, c.ID, client.ContainerStartOptions{}); err != nil {
			return err
		}
		select {
		case <-wait.Result:
		case err := <-wait.Error:
			return err
		}
		_, err = p.api.ContainerRemove(ctx, c.ID, client.ContainerRemoveOptions{Force: true, RemoveVolumes: true})
		return err
	})
}

// likeABox returns what our adapter asks the engine for, with `true` instead of the supervisor.
func (p *parts) likeABox(ctx context.Context) (*mobycontainer.Config, *mobycontainer.HostConfig, error) {
	if p.raw != nil {
		return p.raw.Config, p.raw.HostConfig, nil
	}
	_, info, err := p.box(ctx)
	if err != nil {
		return nil, nil, err
	}
	info.Config.Entrypoint, info.Config.Cmd = nil, []string{"true"}
	info.Config.OpenStdin, info.Config.StdinOnce, info.Config.AttachStdin = false, false, false
	info.Config.Labels = nil
	info.HostConfig.AutoRemove = false
	p.raw = &info
	return info.Config, info.HostConfig, nil
}

// cliTen is the shell script that everybody writes first.
func cliTen(ctx context.Context) error {
	out, err := exec.CommandContext(ctx, "docker", "run", "-d", image, "tail", "-f", "/dev/null").Output()
	if err != nil {
		return fmt.Errorf("docker run: %w", err)
	}
	id := strings.TrimSpace(string(out))
	defer func() { _ = exec.CommandContext(context.WithoutCancel(ctx), "docker", "rm", "-f", id).Run() }()
	for range 10 {
		if err := exec.CommandContext(ctx, "docker", "exec", id, "true").Run(); err != nil {
			return fmt.Errorf("docker exec: %w", err)
		}
	}
	return exec.CommandContext(ctx, "docker", "rm", "-f", id).Run()
}
