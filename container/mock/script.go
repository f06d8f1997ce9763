package mock

import (
	"context"
	"path"
	"slices"
	"strings"
	"time"

	"slipway/container"
	"slipway/internal/pause"
)

// Point is a place where a fault can be put.
type Point string

// The points: one for each method, and one for all of Files.
const (
	OnPrepare Point = "prepare"
	OnCreate  Point = "create"
	OnStart   Point = "start"
	OnExec    Point = "exec"
	OnFiles   Point = "files"
	OnStop    Point = "stop"
	OnRemove  Point = "remove"
	OnGet     Point = "get"
	OnList    Point = "list"
	OnCheck   Point = "check"
)

// Fault is how calls at one point go wrong.
type Fault struct {
	At Point
	// Err is what the call returns, such as container.ErrEngineUnavailable. Nil: the call only
	// waits for Delay, or loses the box.
	Err error
	// Skip lets so many calls pass first.
	Skip int
	// Times is how many calls are hit after that. Zero means all.
	Times int
	// Delay comes before the call. It ends early with the context, whose error the call returns.
	Delay time.Duration
	// Hang waits for the context, whose error the call returns.
	Hang bool
	// LoseBox ends the box first. For OnExec and OnFiles.
	LoseBox bool
	// Happened: the call did what it should, though it returns Err. For OnCreate and OnStart.
	Happened bool
}

// Fail adds a fault. Of several for the same point the first that is not used up is taken.
func (p *Provider) Fail(f Fault) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.faults = append(p.faults, &f)
}

// fault returns the fault that hits this call, having waited as it says. Without one the error is nil.
func (p *Provider) fault(ctx context.Context, at Point) (Fault, error) {
	f, ok := p.take(at)
	if !ok {
		return Fault{}, nil
	}
	if f.Hang {
		<-ctx.Done()
		return f, context.Cause(ctx)
	}
	if f.Delay > 0 && !pause.For(ctx, f.Delay) {
		return f, context.Cause(ctx)
	}
	return f, f.Err
}

func (p *Provider) take(at Point) (Fault, bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	for i, f := range p.faults {
		if f.At != at {
			continue
		}
		if f.Skip > 0 {
			f.Skip--
			return Fault{}, false
		}
		if f.Times == 1 {
			p.faults = slices.Delete(p.faults, i, i+1)
		} else if f.Times > 1 {
			f.Times--
		}
		return *f, true
	}
	return Fault{}, false
}

// Reply is how a scripted command behaves: it prints, takes its time, writes files, and ends.
type Reply struct {
	Stdout, Stderr string
	// Code is its exit code.
	Code int
	// Signal names what ended it instead, such as "SIGSEGV"; Code must then be 128 + its number.
	Signal string
	// After is how long it runs.
	After time.Duration
	// Hang: it runs until it is ended from outside.
	Hang bool
	// IgnoreTERM: it takes the whole grace and KILL to end it.
	IgnoreTERM bool
	// StartError says why it can't be started, with Code 126 or 127.
	StartError string
	// OOM, Pids, Unwatched, Leftovers and Cut are reported in the Exit.
	OOM       bool
	Pids      bool
	Unwatched bool
	Leftovers int
	Cut       bool
	// Files are written to the workspace just before the end, by path.
	Files map[string]string
	// Error is what Exec returns instead of an Exit: the box or its engine failed.
	Error error
	// LoseBox ends the box after the output.
	LoseBox bool
	// Do, if set, is called after After, unless the command was ended before. What it returns is
	// printed too, and is how the command ends.
	Do func(*Run) Reply
}

// Run is a command that is being executed, as Reply.Do sees it.
type Run struct {
	Ctx     context.Context //nolint:containedctx // the argument of a callback
	Spec    container.Spec
	Command container.Command
	Files   container.Files
}

type script struct {
	prefix  string
	replies []Reply
}

// On scripts every command whose words, joined by blanks, begin with prefix; of
// several scripts that fit the longest prefix is taken. The words of a shell step are its
// script, without the shell. Several replies are given in turn, the last one for ever.
func (p *Provider) On(prefix string, replies ...Reply) {
	if len(replies) == 0 {
		replies = []Reply{{}}
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	p.scripts = append(p.scripts, &script{prefix, replies})
}

func (p *Provider) reply(text string) (Reply, bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	var best *script
	for _, s := range p.scripts {
		if strings.HasPrefix(text, s.prefix) && (best == nil || len(s.prefix) > len(best.prefix)) {
			best = s
		}
	}
	if best == nil {
		return Reply{}, false
	}
	r := best.replies[0]
	if len(best.replies) > 1 {
		best.replies = best.replies[1:]
	}
	return r, true
}

// words returns what scripts are matched with: the script of a shell, else the whole command.
func words(args []string) string {
	if len(args) == 0 {
		return ""
	}
	if i := slices.Index(args, "-c"); i > 0 && i+1 < len(args) && strings.HasSuffix(path.Base(args[0]), "sh") {
		return args[i+1]
	}
	return strings.Join(args, " ")
}
