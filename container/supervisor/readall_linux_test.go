package supervisor_test

import (
	"crypto/md5"
	"crypto/sha256"
	"errors"
	"io"
	"strings"
	"testing"

	"slipway/container"
)

// askedFor is what the bulk reads are asked for, in this order: some can't be read, one is asked for twice.
var askedFor = []string{"a", "no", "b/c", "b", "big", "big", "../x", "a"}

var (
	bulkContent = map[string]string{"a": "", "b/c": "hello", "big": strings.Repeat("0123456789", 100000)}
	bulkWrong   = map[string]error{"no": container.ErrNotFound, "b": container.ErrNotRegular, "../x": container.ErrPath}
)

func setupBulk(t *testing.T) *rig {
	t.Helper()
	r := setup(t)
	var list []container.NewFile
	for path, c := range bulkContent {
		list = append(list, file(path, c))
	}
	if _, err := r.Files().WriteAll(t.Context(), entries(list...)); err != nil {
		t.Fatal(err)
	}
	return r
}

func TestReadAll(t *testing.T) {
	r := setupBulk(t)
	i := 0
	err := r.Files().ReadAll(t.Context(), askedFor, func(c container.FileContent) error {
		path := askedFor[i]
		i++
		if want := bulkWrong[path]; want != nil {
			if !errors.Is(c.Err, want) {
				t.Errorf("%s: Err = %v, want %v", path, c.Err, want)
			}
			return nil
		}
		if i == 6 { // the second time: leave most of it unread
			_, err := c.Reader.Read(make([]byte, 10))
			return err
		}
		b, err := io.ReadAll(c.Reader)
		if err != nil || string(b) != bulkContent[path] {
			t.Errorf("%s: %d bytes, %v", path, len(b), err)
		}
		after, err := c.After()
		if err != nil || after != c.Info || c.Info.Size != int64(len(b)) || c.Info.Path != path {
			t.Errorf("%s: Info %+v, After %+v, %v", path, c.Info, after, err)
		}
		return nil
	})
	if err != nil || i != len(askedFor) {
		t.Errorf("ReadAll = %v after %d of %d", err, i, len(askedFor))
	}
	boom := errors.New("boom")
	if err := r.Files().ReadAll(t.Context(), askedFor, func(container.FileContent) error { return boom }); !errors.Is(err, boom) {
		t.Errorf("ReadAll with a failing fn = %v", err)
	}
}

func TestHash(t *testing.T) {
	r := setupBulk(t)
	i := 0
	err := r.Files().Hash(t.Context(), askedFor, func(s container.Sum) error {
		path := askedFor[i]
		i++
		want := container.Sum{Path: path, Size: int64(len(bulkContent[path])), MD5: md5.Sum([]byte(bulkContent[path])), SHA256: sha256.Sum256([]byte(bulkContent[path]))}
		if bulkWrong[path] != nil {
			if !errors.Is(s.Err, bulkWrong[path]) {
				t.Errorf("%s: Err = %v, want %v", path, s.Err, bulkWrong[path])
			}
		} else if s != want {
			t.Errorf("%s: %+v, want %+v", path, s, want)
		}
		return nil
	})
	if err != nil || i != len(askedFor) {
		t.Errorf("Hash = %v after %d of %d", err, i, len(askedFor))
	}
	if err := r.Files().Hash(t.Context(), nil, nil); err != nil {
		t.Errorf("Hash of nothing = %v", err)
	}
}
