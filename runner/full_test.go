package runner

import (
	"context"
	"io"
	"io/fs"
	"strings"
	"testing"
	"time"

	"slipway/container"
	"slipway/job"
	"slipway/runner/internal/steps"
)

// fullFiles is a workspace without room.
type fullFiles struct{ container.Files }

func (f fullFiles) Write(context.Context, string, io.Reader, fs.FileMode) error {
	return container.ErrNoSpace
}

func TestDisk(t *testing.T) {
	t.Parallel()
	limited := job.Resources{Disk: 4 << 20}
	failed := func(code int, signal string) func(*container.Exit) {
		return func(e *container.Exit) { e.Code, e.Signal = code, signal }
	}
	for _, tt := range []struct {
		name   string
		asked  job.Resources
		full   bool
		exit   func(*container.Exit)
		reason job.Reason
		hint   bool
	}{
		{"full", limited, true, failed(1, ""), job.ReasonDisk, true},
		{"not full", limited, false, failed(1, ""), job.ReasonExit, false},
		{"a file too large", limited, false, failed(153, "SIGXFSZ"), job.ReasonDisk, true},
		{"a child's file too large", limited, false, failed(153, ""), job.ReasonDisk, true},
		{"another signal", limited, false, failed(137, "SIGKILL"), job.ReasonExit, false},
		{"no such program", limited, true, func(e *container.Exit) { e.Code, e.Error = 127, "not found" }, job.ReasonExit, false},
		{"no limit", job.Resources{}, true, failed(153, "SIGXFSZ"), job.ReasonExit, false},
		{"memory first", limited, true, func(e *container.Exit) { e.Code, e.OOM = 137, true }, job.ReasonOOM, false},
		{"succeeded", limited, true, failed(0, ""), "", false},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			scenario(t, func(b *bundle) {
				var left []container.FileInfo
				b.boxes.exec = func(ctx context.Context, box *fakeBox, cmd container.Command) (e container.Exit, err error) {
					if strings.HasSuffix(cmd.Args[len(cmd.Args)-1], "look") {
						left, err = box.files.List(ctx, ".")
						return e, err
					}
					if tt.full {
						box.files = fullFiles{box.files}
					}
					tt.exit(&e)
					return e, nil
				}
				j := jobOf(run("fill"), always("look"))
				j.Resources = tt.asked
				r := b.want(b.do(j), tt.reason.Outcome(), tt.reason)
				if got := strings.Contains(r.Message, "; ask for more with resources.disk"); got != tt.hint {
					t.Errorf("got message %q, want the hint: %t", r.Message, tt.hint)
				}
				if len(left) > 0 {
					t.Errorf("left in the workspace: %v", left)
				}
			})
		})
	}
}

// TestDisk_Canceled: a cancel while the box is asked for room leaves nothing of the question behind.
func TestDisk_Canceled(t *testing.T) {
	t.Parallel()
	scenario(t, func(b *bundle) {
		var left []container.FileInfo
		b.boxes.exec = func(ctx context.Context, box *fakeBox, cmd container.Command) (e container.Exit, err error) {
			if strings.HasSuffix(cmd.Args[len(cmd.Args)-1], "look") {
				left, err = box.files.List(ctx, ".")
				return e, err
			}
			box.files = slowFiles{box.files}
			e.Code = 1
			return e, nil
		}
		j := jobOf(run("fail"), always("look"))
		j.Resources.Disk = 4 << 20
		b.start()
		l := b.put(j)
		pass(time.Second / 2)
		l.cancels <- job.Cancel
		b.wait(l)
		b.want(l, job.Canceled, job.ReasonCanceledByUser)
		if len(left) > 0 {
			t.Errorf("left in the workspace: %v", left)
		}
	})
}

// slowFiles takes a second for a write, and does nothing once the context has ended.
type slowFiles struct{ container.Files }

func (f slowFiles) Write(ctx context.Context, p string, r io.Reader, mode fs.FileMode) error {
	err := f.Files.Write(ctx, p, r, mode)
	pass(time.Second)
	return err
}

func (f slowFiles) Delete(ctx context.Context, p string) error {
	if ctx.Err() != nil {
		return ctx.Err()
	}
	return f.Files.Delete(ctx, p)
}

// TestDisk_Bounded: a box that does not answer the question delays the job for a bounded time.
func TestDisk_Bounded(t *testing.T) {
	t.Parallel()
	scenario(t, func(b *bundle) {
		b.boxes.exec = func(_ context.Context, box *fakeBox, _ container.Command) (container.Exit, error) {
			box.files = hangingFiles{box.files}
			return container.Exit{Code: 1}, nil
		}
		j := jobOf(run("fail"))
		j.Resources.Disk = 4 << 20
		r := b.want(b.do(j), job.Failed, job.ReasonExit)
		if got := r.FinishedAt.Sub(r.StartedAt); got != steps.ProbeTime {
			t.Errorf("took %s, want %s", got, steps.ProbeTime)
		}
	})
}

// hangingFiles does not end a write before its context ends.
type hangingFiles struct{ container.Files }

func (hangingFiles) Write(ctx context.Context, _ string, _ io.Reader, _ fs.FileMode) error {
	return hang(ctx)
}

func TestDisk_File(t *testing.T) {
	t.Parallel()
	scenario(t, func(b *bundle) {
		b.boxes.exec = func(_ context.Context, box *fakeBox, _ container.Command) (container.Exit, error) {
			box.files = fullFiles{box.files}
			return container.Exit{}, nil
		}
		j := jobOf(run("fill"), job.Step{Write: &job.WriteFile{Path: "f", Content: ptr("x")}})
		j.Resources.Disk = 4 << 20
		r := b.want(b.do(j), job.Failed, job.ReasonDisk)
		if want := "; ask for more with resources.disk"; !strings.HasSuffix(r.Message, want) {
			t.Errorf("got %q, want it to end with %q", r.Message, want)
		}
	})
}
