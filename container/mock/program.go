package mock

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"slipway/container"
)

// program runs a command that no script knows.
func (b *sandbox) program(cmd container.Command) Reply {
	args := cmd.Args[1:]
	switch cmd.Args[0] {
	case "true":
		return Reply{}
	case "false":
		return Reply{Code: 1}
	case "echo":
		return Reply{Stdout: strings.Join(args, " ") + "\n"}
	case "cat":
		return b.cat(cmd)
	case "env":
		return Reply{Stdout: b.environ(cmd)}
	case "pwd":
		return Reply{Stdout: b.dir(cmd.Dir) + "\n"}
	case "id":
		return b.whoami(cmd)
	case "sleep":
		return sleep(args)
	case "/":
		return Reply{Code: 126, StartError: "/: permission denied"}
	}
	return Reply{Code: 127, StartError: cmd.Args[0] + ": not found, and not scripted in the mock"}
}

func (b *sandbox) cat(cmd container.Command) Reply {
	if len(cmd.Args) == 1 {
		return Reply{Stdout: string(cmd.Stdin)}
	}
	var r Reply
	for _, path := range cmd.Args[1:] {
		content, err := b.disk.read(path)
		if err != nil {
			return Reply{Stdout: r.Stdout, Stderr: "cat: " + path + ": " + err.Error() + "\n", Code: 1}
		}
		r.Stdout += string(content)
	}
	return r
}

func (b *sandbox) environ(cmd container.Command) string {
	env := map[string]string{"PATH": "/usr/bin:/bin", "HOME": "/tmp", "LANG": "C.UTF-8", "CI": "true"}
	maps.Copy(env, b.spec.Env)
	maps.Copy(env, cmd.Env)
	lines := make([]string, 0, len(env))
	for k, v := range env {
		lines = append(lines, k+"="+v+"\n")
	}
	slices.Sort(lines)
	return strings.Join(lines, "")
}

func (b *sandbox) dir(dir string) string {
	switch {
	case dir == "" || dir == ".":
		return b.spec.Workdir
	case strings.HasPrefix(dir, "/"):
		return dir
	}
	return b.spec.Workdir + "/" + dir
}

func (b *sandbox) whoami(cmd container.Command) Reply {
	u := b.spec.User
	if cmd.User != nil {
		u = *cmd.User
	}
	if slices.Contains(cmd.Args, "-g") {
		return Reply{Stdout: fmt.Sprintln(u.GID)}
	}
	return Reply{Stdout: fmt.Sprintln(u.UID)}
}

func sleep(args []string) Reply {
	if len(args) == 1 {
		if d, err := time.ParseDuration(args[0] + "s"); err == nil {
			return Reply{After: d}
		}
	}
	return Reply{Code: 1, Stderr: "sleep: bad number\n"}
}
