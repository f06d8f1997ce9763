package mock

import (
	"context"
	"fmt"
	"time"

	"slipway/container"
)

// Exec runs a scripted command to its end. See container.Sandbox.
func (b *sandbox) Exec(ctx context.Context, cmd container.Command) (container.Exit, error) {
	text := words(cmd.Args)
	b.p.record(OnExec, b.spec.Name, text)
	if err := b.spec.CheckCommand(cmd); err != nil {
		return container.Exit{}, err
	}
	if err := b.enter("exec " + text); err != nil {
		return container.Exit{}, err
	}
	defer b.running.Done()
	fault, err := b.p.fault(ctx, OnExec)
	if fault.LoseBox {
		b.die(container.ErrBoxLost)
	}
	if err != nil {
		return container.Exit{}, fmt.Errorf("run %q: %w", text, err)
	}
	reply, ok := b.p.reply(text)
	if !ok {
		reply = b.program(cmd)
	}
	return b.play(ctx, cmd, reply)
}

// play makes a reply happen.
func (b *sandbox) play(ctx context.Context, cmd container.Command, r Reply) (container.Exit, error) {
	begin := time.Now()
	printed := say(cmd, r)
	if r.LoseBox {
		b.die(container.ErrBoxLost)
	}
	exit, err := b.elapse(ctx, cmd, r)
	if err != nil {
		return container.Exit{}, err
	}
	if r.Do != nil && !exit.TimedOut && !exit.Canceled {
		r = r.Do(&Run{Ctx: ctx, Spec: b.spec, Command: cmd, Files: b.Files()})
		printed += say(cmd, r)
		exit.Code, exit.Signal = r.Code, r.Signal
	}
	if r.Error != nil {
		return container.Exit{}, fmt.Errorf("run %q: %w", words(cmd.Args), r.Error)
	}
	for path, content := range r.Files {
		if _, err := b.disk.write(path, []byte(content), 0o644, time.Time{}); err != nil {
			return container.Exit{}, fmt.Errorf("write scripted file: %w", err)
		}
	}
	exit.Error, exit.OOM, exit.Leftovers, exit.Cut = r.StartError, r.OOM, r.Leftovers, r.Cut
	exit.Pids, exit.Unwatched = r.Pids, r.Unwatched
	exit.Output, exit.Duration = printed, time.Since(begin)
	return exit, nil
}

func say(cmd container.Command, r Reply) int64 {
	if cmd.Output != nil && r.Stdout != "" {
		cmd.Output(container.Stdout, []byte(r.Stdout))
	}
	if cmd.Output != nil && r.Stderr != "" {
		cmd.Output(container.Stderr, []byte(r.Stderr))
	}
	return int64(len(r.Stdout) + len(r.Stderr))
}

// elapse waits until the command ends, by itself or from outside.
func (b *sandbox) elapse(ctx context.Context, cmd container.Command, r Reply) (container.Exit, error) {
	var own, limit <-chan time.Time
	if !r.Hang {
		own = time.After(r.After)
	}
	if cmd.Timeout > 0 {
		limit = time.After(cmd.Timeout)
	}
	select {
	case <-b.done: // a box that is lost wins over a command that ends at the same time
		return container.Exit{}, b.ended()
	default:
	}
	select {
	case <-b.done:
		return container.Exit{}, b.ended()
	case <-own:
		return container.Exit{Code: r.Code, Signal: r.Signal}, nil
	case <-limit:
		return b.kill(container.Exit{TimedOut: true}, cmd.Grace, r.IgnoreTERM)
	case <-ctx.Done():
		return b.kill(container.Exit{Canceled: true}, cmd.Grace, r.IgnoreTERM)
	}
}

// kill ends a command from outside: TERM, grace, KILL.
func (b *sandbox) kill(exit container.Exit, grace time.Duration, ignores bool) (container.Exit, error) {
	const term, kill = 128 + 15, 128 + 9
	if grace > 0 && !ignores {
		exit.Code, exit.Signal = term, "SIGTERM"
		return exit, nil
	}
	exit.Code, exit.Signal = kill, "SIGKILL"
	select {
	case <-time.After(grace):
		return exit, nil
	case <-b.done:
		return container.Exit{}, b.ended()
	}
}
