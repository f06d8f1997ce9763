package steps

import (
	"bufio"
	"context"
	"errors"
	"path"
	"strconv"

	"slipway/container"
	"slipway/internal/hint"
	"slipway/job"
	"slipway/runner/internal/translate"
	"slipway/runner/internal/verdict"
)

// fileAction reads, writes, lists or deletes through the box's file API.
func (x *Executor) fileAction(ctx context.Context, s *job.Step, out *output, r *job.StepResult) error {
	if limit := s.Timeout.Std(); limit > 0 {
		limited, cancel := context.WithTimeoutCause(ctx, limit, &verdict.Timeout{What: "the step", Limit: limit})
		defer cancel()
		ctx = limited
	}
	err := fileCall(ctx, x.cfg.Box.Files(), s, out)
	if err == nil {
		r.Status = job.StepSucceeded
		return nil
	}
	reason, own := verdict.OfFile(err)
	switch {
	case own:
		r.Status, r.Reason, r.Message = job.StepFailed, reason, verdict.HintDisk(hint.Text(err), err, x.cfg.DiskLimited)
	case ctx.Err() != nil:
		r.Status, r.Reason, r.Message = stepStopped(context.Cause(ctx))
	default:
		return err
	}
	return nil
}

// fileCall does what s says. The errors of Files say what failed and where.
func fileCall(ctx context.Context, files container.Files, s *job.Step, out *output) error {
	switch s.Kind() {
	case job.KindWrite:
		w := s.Write
		content, _ := translate.Content(w.Content, w.ContentBase64)
		return files.Write(ctx, path.Clean(w.Path), content, translate.Mode(w.Mode))
	case job.KindRead:
		_, err := files.Read(ctx, path.Clean(s.Read), stdout{out}, 0)
		return err
	case job.KindDelete:
		return files.Delete(ctx, path.Clean(s.Delete))
	case job.KindList:
		entries, err := files.List(ctx, path.Clean(s.List))
		if err != nil {
			return err
		}
		printEntries(out, entries)
	default:
		return errors.New("a step of no known kind")
	}
	return nil
}

// printEntries prints one name a line, a folder's with a slash. A name that
// could be taken for two is quoted as in Go.
func printEntries(out *output, entries []container.FileInfo) {
	w := bufio.NewWriter(stdout{out})
	for _, e := range entries {
		name := path.Base(e.Path)
		if e.Type == container.TypeDir {
			name += "/"
		}
		if quoted := strconv.Quote(name); quoted[1:len(quoted)-1] != name {
			name = quoted
		}
		_, _ = w.WriteString(name + "\n") // stdout never fails
	}
	_ = w.Flush()
}
