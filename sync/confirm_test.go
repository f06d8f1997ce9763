package wsync

import (
	"bytes"
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"io"
	"iter"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"slipway/sync/internal/parallel"
)

// script is a store whose puts get scripted answers, and whose gets yield one object.
type script struct {
	Store
	puts []error // the last one goes on
	sent []string
	get  func() (*Object, error)
	list error
	body func([]byte) // is shown what a put sends
}

func (s *script) Put(_ context.Context, key string, body io.ReadSeeker, _ int64, _ PutOptions) (string, error) {
	n := min(len(s.sent), len(s.puts)-1)
	s.sent = append(s.sent, key)
	if s.body != nil {
		data, err := io.ReadAll(body)
		if err != nil {
			return "", err
		}
		s.body(data)
	}
	return "etag", s.puts[n]
}

func (s *script) Get(context.Context, string) (*Object, error) { return s.get() }

func (s *script) List(context.Context, string) iter.Seq2[ObjectInfo, error] {
	return func(yield func(ObjectInfo, error) bool) { yield(ObjectInfo{}, s.list) }
}

func object(data []byte, etag string) func() (*Object, error) {
	return func() (*Object, error) {
		return &Object{ObjectInfo: ObjectInfo{ETag: etag}, Body: io.NopCloser(bytes.NewReader(data))}, nil
	}
}

func noObject(err error) func() (*Object, error) {
	return func() (*Object, error) { return nil, err }
}

// TestPutVersion: the copy of a state is sent again while nobody says whether it arrived. One that is there already has to
// be the same: another state under this commit's name would be taken for it by a Revert.
func TestPutVersion(t *testing.T) {
	lost := fmt.Errorf("no reply: %w", ErrUnavailable)
	for name, c := range map[string]struct {
		puts  []error
		get   func() (*Object, error)
		tries int
		want  error
	}{
		"at once":                     {[]error{nil}, nil, 1, nil},
		"after two tries":             {[]error{lost, lost, nil}, nil, 3, nil},
		"never":                       {[]error{lost}, nil, commitTries, ErrUnavailable},
		"denied":                      {[]error{ErrDenied}, nil, 1, ErrDenied},
		"no bucket":                   {[]error{lost, ErrNoBucket}, nil, 2, ErrNoBucket},
		"an earlier try's":            {[]error{lost, ErrPrecondition}, object([]byte("state"), ""), 2, nil},
		"another state's":             {[]error{ErrPrecondition}, object([]byte("stats"), ""), 1, ErrCorrupt},
		"one that goes on":            {[]error{ErrPrecondition}, object([]byte("state and more"), ""), 1, ErrCorrupt},
		"one that can't be read back": {[]error{ErrPrecondition}, noObject(lost), 1, ErrUnavailable},
		"one that is gone":            {[]error{ErrPrecondition}, noObject(ErrNotFound), 1, ErrNotFound},
	} {
		synctest.Test(t, func(t *testing.T) {
			store := &script{puts: c.puts, get: c.get}
			err := (&push{syncer: New(store, Options{})}).putVersion(t.Context(), "key", []byte("state"), PutOptions{})
			if !errors.Is(err, c.want) || (c.want == nil) != (err == nil) || len(store.sent) != c.tries {
				t.Errorf("%s: got error %v after %d tries, want %v after %d", name, err, len(store.sent), c.want, c.tries)
			}
		})
	}
}

// TestHeadTries: what settles that a head was not written ends the commit at once. What settles nothing is tried again.
func TestHeadTries(t *testing.T) {
	lost := fmt.Errorf("no reply: %w", ErrUnavailable)
	for name, c := range map[string]struct {
		puts  []error // the version's is the first
		tries int
		want  error
	}{
		"at once":         {[]error{nil, nil}, 1, nil},
		"denied":          {[]error{nil, ErrDenied}, 1, ErrDenied},
		"no bucket":       {[]error{nil, lost, ErrNoBucket}, 2, ErrNoBucket},
		"version denied":  {[]error{ErrDenied}, 0, ErrDenied},
		"after two tries": {[]error{nil, lost, ErrPrecondition, nil}, 3, nil}, // and the head still is base's
	} {
		synctest.Test(t, func(t *testing.T) {
			store := &script{puts: c.puts, get: noObject(ErrNotFound)}
			p := &push{syncer: New(store, Options{}), prefix: "ws/", base: &Base{}}
			etag, err := p.commit(t.Context(), &state{Version: stateVersion, Commit: newULID(time.Now())})
			heads := 0
			for _, key := range store.sent {
				if key == "ws/"+stateName {
					heads++
				}
			}
			if !errors.Is(err, c.want) || (c.want == nil) != (err == nil) || heads != c.tries || err == nil && etag != "etag" {
				t.Errorf("%s: got %q, %v after %d tries, want %v after %d", name, etag, err, heads, c.want, c.tries)
			}
		})
	}
}

// TestReadBack: what the head says about a write of which nothing is known.
func TestReadBack(t *testing.T) {
	id := func(hour int) string { return newULID(time.Unix(int64(hour)*3600, 0)) }
	base, ours, theirs := id(1), id(2), id(3)
	head := func(commit, etag string, parents ...string) func() (*Object, error) {
		return object((&state{Version: stateVersion, Commit: commit, Parents: parents, Layout: layoutPacked, Writer: Writer{Job: "j"}}).encode(), etag)
	}
	errCause := errors.New("cause")
	for name, c := range map[string]struct {
		get      func() (*Object, error)
		base     Base
		canceled bool
		etag     string
		settled  bool
		want     error
		conflict *Conflict
	}{
		"ours":                         {head(ours, "new"), Base{Commit: base, etag: "old"}, false, "new", true, nil, nil},
		"ours, and the context ended":  {head(ours, "new"), Base{Commit: base, etag: "old"}, true, "new", true, nil, nil},
		"ours, and another on it":      {head(theirs, "other", ours, base), Base{Commit: base, etag: "old"}, false, overtaken, true, nil, nil},
		"base's":                       {head(base, "old"), Base{Commit: base, etag: "old"}, false, "", false, errCause, nil},
		"base's, no time for another":  {head(base, "old"), Base{Commit: base, etag: "old"}, true, "", true, errCause, nil},
		"none, as before":              {noObject(ErrNotFound), Base{}, false, "", false, errCause, nil},
		"none, though there was one":   {noObject(ErrNotFound), Base{Commit: base, etag: "old"}, false, "", true, ErrConflict, &Conflict{Base: base}},
		"another's":                    {head(theirs, "other", base), Base{Commit: base, etag: "old"}, false, "", true, ErrConflict, &Conflict{Base: base, Head: theirs, HeadWriter: Writer{Job: "j"}}},
		"another's, where none was":    {head(theirs, "other"), Base{}, false, "", true, ErrConflict, &Conflict{Head: theirs, HeadWriter: Writer{Job: "j"}}},
		"can't be read":                {noObject(ErrUnavailable), Base{Commit: base, etag: "old"}, false, "", true, errCause, nil},
		"can't be read, but refused":   {noObject(ErrDenied), Base{Commit: base, etag: "old"}, false, "", true, ErrDenied, nil},
		"no state, so outcome unknown": {object([]byte("junk"), "x"), Base{Commit: base, etag: "old"}, false, "", true, ErrState, nil},
	} {
		ctx, cancel := context.WithCancel(t.Context())
		if c.canceled {
			cancel()
		}
		p := &push{syncer: New(&script{get: c.get}, Options{}), prefix: "ws/", base: &c.base}
		etag, settled, err := p.readBack(ctx, &state{Commit: ours}, "version", errCause)
		cancel()
		if etag != c.etag || settled != c.settled || (err == nil) != (c.want == nil) || !errors.Is(err, c.want) {
			t.Errorf("%s: got %q, settled %t, %v, want %q, %t, %v", name, etag, settled, err, c.etag, c.settled, c.want)
		}
		if conflict, ok := errors.AsType[*Conflict](err); ok && c.conflict != nil {
			want := *c.conflict
			want.Prefix, want.Commit, want.Version, want.Reason = "ws/", ours, "version", conflict.Reason
			if *conflict != want {
				t.Errorf("%s: got %+v, want %+v", name, *conflict, want)
			}
		}
	}
}

// TestPackBuffers: a buffer is used again once its pack is stored. One whose request failed is not: the store may have
// given the call up, and still read from it.
func TestPackBuffers(t *testing.T) {
	for _, failure := range []error{nil, ErrUnavailable} {
		store := &script{puts: []error{failure}, body: func([]byte) {}}
		p := &push{syncer: New(store, Options{Parallel: 2}), scan: &scan{}, base: &Base{}}
		u := &upload{push: p, group: parallel.NewGroup(t.Context(), 2)}
		k := newPacker(u)
		content, err := k.room(5)
		if err != nil {
			t.Fatal(err)
		}
		copy(content, "hello")
		sent := &k.buf[:1][0]
		if err := errors.Join(k.add(&entry{Path: "f", Size: 5, Pack: -1}, content), k.flush()); err != nil {
			t.Fatal(err)
		}
		if err := u.group.Wait(); !errors.Is(err, failure) {
			t.Errorf("got error %v, want %v", err, failure)
		}
		again := false
		for len(k.free) > 0 {
			buf := <-k.free
			again = again || cap(buf) > 0 && &buf[:1][0] == sent
		}
		if again != (failure == nil) {
			t.Errorf("after the error %v: got the buffer used again %t", failure, again)
		}
	}
}

// TestPackedChecksums: an entry's place and checksums are those of its content in the object that was sent.
func TestPackedChecksums(t *testing.T) {
	var sent []byte
	store := &script{puts: []error{nil}, body: func(b []byte) { sent = b }}
	u := &upload{push: &push{syncer: New(store, Options{}), scan: &scan{}, base: &Base{}}, group: parallel.NewGroup(t.Context(), 1)}
	k := newPacker(u)
	var entries []*entry
	for _, name := range []string{"a", strings.Repeat("n", 101), "ü", "z"} {
		content, err := k.room(int64(len(name)))
		if err != nil {
			t.Fatal(err)
		}
		copy(content, name)
		e := &entry{Path: name, Size: int64(len(name)), Pack: -1}
		entries = append(entries, e)
		if err := k.add(e, content); err != nil {
			t.Fatal(err)
		}
	}
	if err := errors.Join(k.flush(), u.group.Wait()); err != nil {
		t.Fatal(err)
	}
	k.recordSums()
	for _, e := range entries {
		if got := string(sent[e.Off:][:e.Size]); got != e.Path || e.SHA256 != sha256.Sum256([]byte(e.Path)) || e.Off%tarBlock != 0 {
			t.Errorf("%.20q: got %q at %d, checksum %x, want its name", e.Path, got, e.Off, e.SHA256)
		}
	}
	if len(u.packs) != 1 || u.packs[0].SHA256 != sha256.Sum256(sent) || u.packs[0].Size != int64(len(sent)) {
		t.Errorf("pack: got %+v, want the size and checksum of the %d bytes that were sent", u.packs, len(sent))
	}
}

// TestFindVersion: a list that fails is no proof that a version is missing.
func TestFindVersion(t *testing.T) {
	for _, listErr := range []error{ErrUnavailable, ErrDenied, nil} {
		_, err := New(&script{list: listErr}, Options{}).readVersion(t.Context(), "ws/", newULID(time.Now()))
		if want := listErr; want != nil && (!errors.Is(err, want) || errors.Is(err, ErrCorrupt)) || want == nil && !errors.Is(err, ErrCorrupt) {
			t.Errorf("list with the error %v: got %v", listErr, err)
		}
	}
}

// TestOptions: whatever is asked for, a pack stays below what a Pull accepts, and nothing is zero.
func TestOptions(t *testing.T) {
	for _, o := range []Options{{}, {PackSize: 1 << 40, SmallFile: 1 << 40}, {PackSize: 100}, {SmallFile: 1 << 20}, {Parallel: -1, MaxEntries: -1, MaxBytes: -1, MaxStateBytes: -1, PackSize: -1, SmallFile: -1}} {
		got := o.withDefaults()
		if got.PackSize+got.SmallFile+1<<20 > maxPack || got.SmallFile > got.PackSize || got.PackSize < 1 || got.SmallFile < 1 ||
			got.Parallel < 1 || got.MaxEntries < 1 || got.MaxBytes < 1 || got.MaxStateBytes < 1 {
			t.Errorf("%+v: got %+v", o, got)
		}
		if o.PackSize == 100 && got.PackSize != 100 || o.SmallFile == 1<<20 && got.SmallFile != 1<<20 {
			t.Errorf("%+v: got %+v, want what was asked for", o, got)
		}
	}
}
