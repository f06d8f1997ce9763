package supervisor

import (
	"slices"
	"time"

	"slipway/container"
	"slipway/container/supervisor/internal/wire"
)

// Config is what the box is told at the start. Zero fields take the default.
type Config struct {
	// Workdir is the absolute path of the workspace in the box. Default container.DefaultWorkdir.
	Workdir string
	// User runs the commands and owns what Files makes. There is no default: zero is root. See container.Spec.WithDefaults.
	User container.User
	// Env is set for every command, over the box's own environment.
	Env map[string]string
	// DeadMan is how long the box lives without a sign of this Session. Default container.DefaultDeadMan.
	DeadMan time.Duration
	// Lifetime is how long the box lives at all. Default container.DefaultLifetime.
	Lifetime time.Duration
	// Scratch lists folders that every command may write to; they are emptied at the end. Default /tmp.
	Scratch []string
	// Root, if set, is removed with all it holds when the box ends. It is for a supervisor that is not
	// process 1: that one changes and empties only what lies in Root.
	Root string
	// Home is the commands' HOME. Default /tmp.
	Home string
	// Lost, if set, is asked once, when the box is lost, before anybody is told. It gets the error that says how, and may
	// return it with what else is known: ErrBoxOOM, ErrBoxEnded. It may take a few seconds; Close waits for it.
	Lost func(error) error
}

func (c Config) withDefaults() Config {
	if c.Workdir == "" {
		c.Workdir = container.DefaultWorkdir
	}
	if c.DeadMan <= 0 {
		c.DeadMan = container.DefaultDeadMan
	}
	if c.Lifetime <= 0 {
		c.Lifetime = container.DefaultLifetime
	}
	if c.Scratch == nil {
		c.Scratch = []string{"/tmp"}
	}
	if c.Home == "" {
		c.Home = "/tmp"
	}
	return c
}

func (c Config) settings() wire.Settings {
	return wire.Settings{
		Workdir: c.Workdir, Home: c.Home, Root: c.Root, UID: c.User.UID, GID: c.User.GID,
		Env: environ(c.Env), Scratch: c.Scratch, DeadMan: c.DeadMan, Lifetime: c.Lifetime,
	}
}

// environ turns variables into sorted KEY=value strings.
func environ(vars map[string]string) []string {
	list := make([]string, 0, len(vars))
	for k, v := range vars {
		list = append(list, k+"="+v)
	}
	slices.Sort(list)
	return list
}
