package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"time"

	"slipway/cmd/internal/cli"
	"slipway/cmd/internal/settings"
	"slipway/container"
	"slipway/container/docker"
	"slipway/container/docker/credentials"
	"slipway/internal/hint"
)

// dockerConfig says which engine makes the boxes, and how.
type dockerConfig struct {
	host, configDir, auth, runtime, cgroupParent string
	parallel                                     int
	pullStall                                    time.Duration
	minFree                                      int64
}

// configOff is the folder that has no credentials.
const configOff = "off"

func addDocker(set *settings.Set, c *dockerConfig) {
	set.String(&c.host, "docker.host", "", "where the container engine is; default: unix:///var/run/docker.sock").AlsoEnv("DOCKER_HOST").
		Check(cli.UnlessEmpty(&c.host, docker.CheckHost))
	set.String(&c.configDir, "docker.config", "", "folder of the docker command's config.json, which has or names the credentials of registries; off: none; default: ~/.docker").
		AlsoEnv("DOCKER_CONFIG").Check(c.checkFile)
	set.Secret(&c.auth, "docker.auth", "credentials of registries, as a config.json has them, in place of docker.config").AlsoEnv("DOCKER_AUTH_CONFIG").
		Check(cli.UnlessEmpty(&c.auth, func(text string) error { return credentials.File{Text: text}.Check() }))
	set.String(&c.runtime, "docker.runtime", "", "OCI runtime of the boxes, such as runsc; default: the engine's").Check(cli.UnlessEmpty(&c.runtime, docker.CheckRuntime))
	set.String(&c.cgroupParent, "docker.cgroup_parent", "", "cgroup that all boxes are put under, such as slipway.slice; default: the engine's").
		Check(cli.UnlessEmpty(&c.cgroupParent, docker.CheckCgroupParent))
	set.Int(&c.parallel, "docker.parallel", 0, "most starts and removals of boxes at once; 0: one per processor, at least 2").
		Check(func() error { return atLeast(0, c.parallel) })
	set.Duration(&c.pullStall, "docker.pull_stall", docker.DefaultPullStall, "ends the pull of an image that makes no progress for so long").
		Check(func() error { return atLeast(time.Second, c.pullStall) })
	set.Size(&c.minFree, "docker.min_free", docker.DefaultMinFree, "least room on the engine's disk, if that is on this machine, else no job is fetched; 0: do not look")
}

// file is where the docker command keeps the credentials of registries. It is nil if nothing shall be read.
func (c *dockerConfig) file() *credentials.File {
	switch {
	case c.auth != "":
		return &credentials.File{Text: c.auth}
	case c.configDir == configOff:
		return nil
	case c.configDir != "":
		return &credentials.File{Path: filepath.Join(c.configDir, "config.json")}
	}
	home, err := os.UserHomeDir()
	if err != nil {
		return nil // a user without one has no .docker in it
	}
	return &credentials.File{Path: filepath.Join(home, ".docker", "config.json"), Optional: true} // a service may be kept from all homes
}

// checkFile looks at the folder that was asked for.
func (c *dockerConfig) checkFile() error {
	if c.configDir == "" || c.configDir == configOff {
		return nil // what is in ~/.docker may be of no concern: it counts when a registry wants it
	}
	if _, err := os.ReadDir(c.configDir); err != nil {
		return fmt.Errorf("want the folder of a config.json, or off: %w", err)
	}
	return c.file().Check() // there may be none until the first docker login
}

// config is what open makes the provider of.
func (c *dockerConfig) config() docker.Config {
	cfg := docker.Config{Host: c.host, Parallel: c.parallel, Runtime: c.runtime, CgroupParent: c.cgroupParent, PullStall: c.pullStall, MinFree: cmp.Or(c.minFree, -1)}
	if file := c.file(); file != nil {
		cfg.Credentials = file.Get
	}
	return cfg
}

var _ container.Provider = (*docker.Provider)(nil)

// open connects to the engine, and makes sure that it answers.
func (c *dockerConfig) open(ctx context.Context) (*docker.Provider, error) {
	p, err := docker.New(c.config())
	if err != nil {
		return nil, c.explain(err)
	}
	ctx, cancel := context.WithTimeout(ctx, 20*time.Second)
	defer cancel()
	if err := p.Check(ctx); err != nil {
		return nil, errors.Join(c.explain(err), p.Close())
	}
	return p, nil
}

// errNoEngine is what every failure to reach the engine matches.
var errNoEngine = errors.New("no container engine")

func (c *dockerConfig) explain(err error) error {
	where := c.host
	if where == "" {
		where = "the default socket"
	}
	if errors.Is(err, container.ErrEngineFull) {
		return err // it was reached
	}
	err = fmt.Errorf("%w at %s: %w", errNoEngine, where, err)
	if errors.Is(err, container.ErrUnsupported) {
		return err // it was reached, and its own hint says what it lacks
	}
	return hint.With(err,
		"Is Docker Engine running, and may this user reach it? Set --docker-host, SLIPWAY_DOCKER_HOST or DOCKER_HOST")
}
