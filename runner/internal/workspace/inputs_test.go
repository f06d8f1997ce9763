package workspace

import (
	"context"
	"crypto/sha256"
	"fmt"
	"io"
	"strings"
	"testing"

	"slipway/container"
	"slipway/job"
	wsync "slipway/sync"
	"slipway/sync/wsynctest"
)

// opened is a store that knows how many of its objects are being read.
type opened struct {
	wsync.Store
	now int
}

func (s *opened) Get(ctx context.Context, key string) (*wsync.Object, error) {
	o, err := s.Store.Get(ctx, key)
	if err == nil {
		s.now++
		o.Body = &body{ReadCloser: o.Body, of: s}
	}
	return o, err
}

type body struct {
	io.ReadCloser
	of *opened
}

func (b *body) Close() error {
	b.of.now--
	return b.ReadCloser.Close()
}

// TestInputs_OneObjectAtATime: an object is closed before the next one is opened, also the one at which the reader stops.
func TestInputs_OneObjectAtATime(t *testing.T) {
	t.Parallel()
	const content = "content"
	store := &opened{Store: wsynctest.NewStore()}
	if _, err := store.Put(t.Context(), "p/k", strings.NewReader(content), int64(len(content)), wsync.PutOptions{}); err != nil {
		t.Fatal(err)
	}
	sum := fmt.Sprintf("%x", sha256.Sum256([]byte(content)))
	in := &inputs{store: store, folder: "p/", list: []job.Input{
		{Path: "a", Key: "k", SHA256: sum}, {Path: "b", Key: "k", SHA256: sum}, {Path: "c", Key: "k", SHA256: sum},
	}}
	var got []string
	for file, err := range in.all(t.Context()) {
		if err != nil {
			t.Fatal(err)
		}
		if store.now != 1 {
			t.Errorf("at %s: %d objects are open, want 1", file.Path, store.now)
		}
		read(t, file)
		if got = append(got, file.Path); len(got) == 2 {
			break
		}
	}
	if fmt.Sprint(got) != "[a b]" || store.now != 0 {
		t.Errorf("got %v with %d objects open at the end, want [a b] and none", got, store.now)
	}
}

// TestInputs_Blame: the box answers while later inputs are on their way, and its error names a path.
func TestInputs_Blame(t *testing.T) {
	t.Parallel()
	in := &inputs{list: []job.Input{{Path: "ro/b"}, {Path: "x/../ro/c"}, {Path: "d"}}, at: 2}
	at := func(path string) error {
		return fmt.Errorf("write files: %w", &container.FileError{Path: path, Err: container.ErrPermission})
	}
	for _, tt := range []struct {
		err  error
		want int
		text string
	}{
		{at("ro/b"), 0, "inputs[0] (ro/b): permission denied"},
		{at("ro/c"), 1, "inputs[1] (x/../ro/c): permission denied"},
		{at("elsewhere"), 2, "inputs[2] (d): write files: elsewhere: permission denied"},
		{container.ErrBoxLost, 2, "inputs[2] (d): box lost"},
	} {
		got := in.of(tt.err)
		if got != tt.want {
			t.Errorf("%v: got input %d, want %d", tt.err, got, tt.want)
		}
		if text := inputError(got, &in.list[got], tt.err).Error(); text != tt.text {
			t.Errorf("got %q, want %q", text, tt.text)
		}
	}
}

func read(t *testing.T, f container.NewFile) {
	t.Helper()
	if _, err := io.Copy(io.Discard, f.Content); err != nil {
		t.Error(err)
	}
}
