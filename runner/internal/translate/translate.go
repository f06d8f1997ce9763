// Package translate says in the words of package container what a job says in its own. The two packages don't know
// each other. Everything here is pure.
//
//	job.Job ─► Spec        job.Step ─► Command        job.WriteFile, job.Input ─► Content, Mode
package translate

import (
	"bytes"
	"fmt"
	"io"
	"io/fs"
	"slices"
	"strconv"
	"strings"

	"slipway/container"
	"slipway/job"
)

// Spec says what box j asks for. defaults fills what j's resources leave out.
func Spec(j *job.Job, defaults container.Resources) (container.Spec, error) {
	user, err := User(j.User)
	if err != nil {
		return container.Spec{}, fmt.Errorf("user: %w", err)
	}
	spec := container.Spec{
		Image: j.Image, Platform: j.Platform, User: user, Workdir: j.Workdir, Env: j.Env,
		Network: container.Network(j.Network), Resources: resources(j.Resources, defaults),
	}
	if w := j.Workspace; w != nil {
		spec.FromImage = w.FromImage // until it is known whether something is stored
	}
	for _, r := range j.Relax {
		spec.Relaxed = append(spec.Relaxed, container.Relaxation(r))
	}
	if user == (container.User{}) && j.User != "" {
		spec.Relaxed = append(spec.Relaxed, container.RelaxRootSteps) // else 0:0 would mean "nothing said"
	}
	return spec, nil
}

// resources are the job's, and the worker's defaults where the job says nothing.
func resources(r job.Resources, def container.Resources) container.Resources {
	return container.Resources{
		CPUs: r.CPUs, Memory: int64(r.Memory), Pids: r.Pids, Disk: int64(r.Disk), Tmp: int64(r.Tmp), Shm: int64(r.Shm),
	}.Or(def)
}

// User reads "uid" or "uid:gid". A missing gid is the uid. The empty string is the zero User.
func User(s string) (container.User, error) {
	if s == "" {
		return container.User{}, nil
	}
	uid, gid, both := strings.Cut(s, ":")
	if !both {
		gid = uid
	}
	u, err1 := strconv.ParseUint(uid, 10, 31)
	g, err2 := strconv.ParseUint(gid, 10, 31)
	if err1 != nil || err2 != nil {
		return container.User{}, fmt.Errorf("%.40q is not \"uid\" or \"uid:gid\"", s)
	}
	return container.User{UID: int(u), GID: int(g)}, nil
}

// Command is the process of a run or command step. A script goes into the shell's arguments: a job's cap keeps it below
// what a kernel takes there.
func Command(s *job.Step) (container.Command, error) {
	cmd := container.Command{Args: s.Command, Dir: s.Dir, Env: s.Env, Timeout: s.Timeout.Std(), Grace: job.DefaultGrace}
	if s.Run != "" {
		shell := s.Shell
		if len(shell) == 0 {
			shell = job.DefaultShell()
		}
		cmd.Args = append(slices.Clone(shell), s.Run)
	}
	if s.Grace != nil {
		cmd.Grace = s.Grace.Std()
	}
	if s.Stdin != nil {
		cmd.Stdin = []byte(*s.Stdin)
	}
	if s.User != "" {
		u, err := User(s.User)
		if err != nil {
			return cmd, fmt.Errorf("user: %w", err)
		}
		cmd.User = &u
	}
	return cmd, nil
}

// Content reads a file that a job holds itself: text, or data if that is nil. size is its length in bytes.
func Content(text *string, data []byte) (content io.Reader, size int64) {
	if text != nil {
		return strings.NewReader(*text), int64(len(*text))
	}
	return bytes.NewReader(data), int64(len(data))
}

// Mode is a file's mode.
func Mode(m job.Mode) fs.FileMode { return fs.FileMode(m) & fs.ModePerm }
