package workspace

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"hash"
	"io"
	"iter"
	"path"

	"slipway/container"
	"slipway/job"
	"slipway/runner/internal/translate"
	"slipway/runner/internal/verdict"
	wsync "slipway/sync"
)

// writeInputs puts all inputs into the workspace with one request, after one for
// each folder that they need.
func (w *Workspace) writeInputs(ctx context.Context, files container.Files) error {
	made := map[string]bool{".": true}
	for i := range w.job.Inputs {
		dir := path.Dir(path.Clean(w.job.Inputs[i].Path))
		if made[dir] {
			continue
		}
		made[dir] = true
		if err := files.Mkdir(ctx, dir, 0o755); err != nil {
			return inputError(i, &w.job.Inputs[i], err)
		}
	}
	in := &inputs{store: w.cfg.Store, folder: w.cfg.Prefix + inputsFolder, list: w.job.Inputs}
	if _, err := files.WriteAll(ctx, in.all(ctx)); err != nil {
		if f := (*verdict.Fault)(nil); errors.As(err, &f) {
			return err
		}
		at := in.of(err)
		return inputError(at, &w.job.Inputs[at], err)
	}
	return nil
}

// of is the input that err is about. The box answers while later inputs are on their way already.
func (in *inputs) of(err error) int {
	if named, ok := errors.AsType[*container.FileError](err); ok {
		for i := range in.list {
			if path.Clean(in.list[i].Path) == named.Path {
				return i
			}
		}
	}
	return in.at
}

// inputError names the input. What the job itself got wrong is not tried again; a full disk is told as one, and a box that is
// gone, too.
func inputError(i int, in *job.Input, err error) error {
	if named, ok := errors.AsType[*container.FileError](err); ok && named.Path == path.Clean(in.Path) {
		err = named.Err // the path stands before it
	}
	named := fmt.Errorf("inputs[%d] (%s): %w", i, in.Path, err)
	if reason, own := verdict.OfFile(err); own && reason != job.ReasonDisk {
		return &verdict.Fault{Reason: job.ReasonInput, Final: true, Err: named}
	}
	return named
}

// inputs yields a job's input files. One object of the store is open at a time.
type inputs struct {
	store  wsync.Store
	folder string
	list   []job.Input
	at     int // the input that is being written
}

// all returns an iterator for container.Files.WriteAll.
func (in *inputs) all(ctx context.Context) iter.Seq2[container.NewFile, error] {
	return func(yield func(container.NewFile, error) bool) {
		for i := range in.list {
			in.at = i
			if !in.one(ctx, &in.list[i], yield) {
				return
			}
		}
	}
}

func (in *inputs) one(ctx context.Context, input *job.Input, yield func(container.NewFile, error) bool) bool {
	file := container.NewFile{Path: path.Clean(input.Path), Type: container.TypeFile, Mode: translate.Mode(input.Mode)}
	if input.Key != "" {
		return in.stored(ctx, input, file, yield)
	}
	content, size := translate.Content(input.Content, input.ContentBase64)
	if file.Size = size; size > 0 {
		file.Content = content
	}
	return yield(file, nil)
}

// stored yields a file with an object's bytes, and an error if they are not what
// the job names. The box is thrown away then, so no step ever sees the file.
func (in *inputs) stored(ctx context.Context, input *job.Input, file container.NewFile, yield func(container.NewFile, error) bool) bool {
	key := in.folder + input.Key
	o, err := in.store.Get(ctx, key)
	if err != nil {
		return yield(file, in.fault(input, err, errors.Is(err, wsync.ErrNotFound)))
	}
	defer o.Body.Close()
	sum := &hashing{r: o.Body, hash: sha256.New()}
	if file.Size = o.Size; file.Size > 0 {
		file.Content = sum
	}
	if !yield(file, nil) {
		return false
	}
	if sum.err != nil {
		return yield(file, in.fault(input, fmt.Errorf("read %s: %w", key, sum.err), false))
	}
	if got := hex.EncodeToString(sum.hash.Sum(nil)); got != input.SHA256 || sum.n != o.Size {
		err := fmt.Errorf("object %s has the sha256 %s (%d bytes), the job says %s", key, got, sum.n, input.SHA256)
		return yield(file, in.fault(input, err, true))
	}
	return true
}

func (in *inputs) fault(input *job.Input, err error, final bool) error {
	return &verdict.Fault{Reason: job.ReasonInput, Final: final, Err: fmt.Errorf("inputs[%d] (%s): %w", in.at, input.Path, err)}
}

// hashing hashes what is read through it.
type hashing struct {
	r    io.Reader
	hash hash.Hash
	n    int64
	err  error
}

func (h *hashing) Read(p []byte) (int, error) {
	n, err := h.r.Read(p)
	h.hash.Write(p[:n])
	h.n += int64(n)
	if err != nil && !errors.Is(err, io.EOF) {
		h.err = err
	}
	return n, err
}
