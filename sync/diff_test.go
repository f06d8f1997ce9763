package wsync

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"
)

// states are written as "path:content" words; a mode may follow as in "a:1:0755".
func stateOf(words string) *State {
	if words == "-" {
		return nil
	}
	s := &State{}
	for w := range strings.FieldsSeq(words) {
		part := strings.Split(w, ":")
		e := Entry{Path: part[0], Type: TypeFile, Mode: 0o644, Pack: -1, Size: int64(len(part[1])), SHA256: [32]byte{part[1][0]}}
		if len(part) > 2 {
			fmt.Sscanf(part[2], "%o", &e.Mode) //nolint:errcheck // the test's own words
		}
		s.Files = append(s.Files, e)
	}
	return s
}

func TestDiff(t *testing.T) {
	names := map[Action]string{Upload: "upload", UploadMeta: "meta", DeleteRemote: "delete-remote", Download: "download", DeleteLocal: "delete-local", Conflicted: "conflict"}
	for _, c := range []struct{ base, local, remote, want string }{
		{"a:1", "a:1", "a:1", ""},
		{"-", "a:1", "-", "a upload"},
		{"a:1 b:1", "a:1 b:1", "-", "a upload, b upload"}, // the head is gone: never a reason to delete
		{"-", "", "-", ""},
		{"a:1", "a:2", "a:1", "a upload"},
		{"a:1", "a:1:0755", "a:1", "a meta"},
		{"a:1", "a:1:04644", "a:1", ""},
		{"a:1", "", "a:1", "a delete-remote"},
		{"a:1", "a:1", "a:2", "a download"},
		{"a:1", "a:1", "", "a delete-local"},
		{"a:1", "a:2", "a:3", "a conflict"},
		{"a:1", "", "a:3", "a conflict"},
		{"a:1", "a:2", "", "a conflict"},
		{"a:1", "a:2", "a:2", ""},
		{"", "a:1", "a:2", "a conflict"},
		{"-", "a:1", "a:1 b:1", "b download"},
		{"a:1", "a/b:1", "a:1", "a delete-remote, a/b upload"},
	} {
		var got []string
		for _, d := range Diff(stateOf(c.base), stateOf(c.local), stateOf(c.remote)) {
			got = append(got, d.Path+" "+names[d.Action])
		}
		if g := strings.Join(got, ", "); g != c.want {
			t.Errorf("base %q, local %q, remote %q: got %q, want %q", c.base, c.local, c.remote, g, c.want)
		}
	}
}

func drawState(t *rapid.T, name string) *State {
	content := rapid.MapOf(rapid.SampledFrom([]string{"a", "a-", "a/b", "b", "b/c/d", "z"}), rapid.SampledFrom([]string{"1", "2", "1:0755", "22"})).Draw(t, name)
	var words []string
	for _, p := range slices.Sorted(maps.Keys(content)) {
		words = append(words, p+":"+content[p])
	}
	return stateOf(strings.Join(words, " "))
}

func asMap(s *State) map[string]Entry {
	m := map[string]Entry{}
	for _, e := range s.Files {
		m[e.Path] = e
	}
	return m
}

func sameMaps(a, b map[string]Entry) bool {
	return maps.EqualFunc(a, b, func(x, y Entry) bool { return sameEntry(&x, &y) })
}

// apply does what the deltas say to both sides.
func apply(deltas []Delta, local, remote map[string]Entry) {
	for _, d := range deltas {
		switch d.Action {
		case Upload, UploadMeta:
			remote[d.Path] = *d.Local
		case DeleteRemote:
			delete(remote, d.Path)
		case Download:
			local[d.Path] = *d.Remote
		case DeleteLocal:
			delete(local, d.Path)
		}
	}
}

func checkDiff(t interface {
	Errorf(string, ...any)
}, base, local, remote *State,
) {
	deltas := Diff(base, local, remote)
	l, r := asMap(local), asMap(remote)
	apply(deltas, l, r)
	conflicts := 0
	for i, d := range deltas {
		if i > 0 && deltas[i-1].Path >= d.Path {
			t.Errorf("deltas are not sorted: %q, %q", deltas[i-1].Path, d.Path)
		}
		if d.Action == Conflicted {
			conflicts++
		}
	}
	if conflicts == 0 && !sameMaps(l, r) {
		t.Errorf("after applying %+v the sides differ: %v, %v", deltas, l, r)
	}
	// With one writer the store becomes what the workspace is, and the workspace is left alone.
	l, r = asMap(local), asMap(base)
	apply(Diff(base, local, base), l, r)
	if !sameMaps(r, asMap(local)) || !sameMaps(l, asMap(local)) {
		t.Errorf("one writer: the store became %v, the workspace %v, want both %v", r, l, asMap(local))
	}
}

func TestDiffProperties(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		checkDiff(t, drawState(t, "base"), drawState(t, "local"), drawState(t, "remote"))
	})
}

func FuzzDiff(f *testing.F) {
	f.Add([]byte("abc"), []byte("abd"), []byte(""))
	f.Fuzz(func(t *testing.T, base, local, remote []byte) {
		make := func(b []byte) *State {
			content := map[string]byte{}
			for i := 0; i+1 < len(b); i += 2 {
				content[string('a'+rune(b[i]%8))] = b[i+1]%3 + 1
			}
			s := &State{}
			for _, p := range slices.Sorted(maps.Keys(content)) {
				s.Files = append(s.Files, Entry{Path: p, Type: TypeFile, Mode: 0o644, SHA256: [32]byte{content[p]}, Pack: -1})
			}
			return s
		}
		checkDiff(t, make(base), make(local), make(remote))
	})
}
