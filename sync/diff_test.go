package wsync

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"
)

// entriesOf reads "path:content" words; a mode may follow as in "a:1:0755".
func entriesOf(words string) []entry {
	var all []entry
	for w := range strings.FieldsSeq(words) {
		part := strings.Split(w, ":")
		e := entry{Path: part[0], Type: TypeFile, Mode: 0o644, Pack: -1, Size: int64(len(part[1])), SHA256: [32]byte{part[1][0]}}
		if len(part) > 2 {
			fmt.Sscanf(part[2], "%o", &e.Mode) //nolint:errcheck // the test's own words
		}
		all = append(all, e)
	}
	return all
}

func TestDiff(t *testing.T) {
	for _, c := range []struct{ head, now, want string }{
		{"", "", ""},
		{"a:1", "a:1", ""},
		{"", "a:1 b:1", "a added, b added"},
		{"a:1", "a:2", "a modified"},
		{"a:1", "a:22", "a modified"},
		{"a:1", "a:1:0755", "a modified"},
		{"a:1", "a:1:04644", ""}, // setuid is not restored, so its absence is no change
		{"a:1", "", "a deleted"},
		{"a:1 b:1 c:1", "b:1", "a deleted, c deleted"},
		{"a:1", "a/b:1", "a deleted, a/b added"},
		{"a/b:1 z:1", "a:1 z:1", "a added, a/b deleted"},
	} {
		var got []string
		for _, d := range diff(entriesOf(c.head), entriesOf(c.now)) {
			got = append(got, d.Path+" "+string(d.Kind))
		}
		if g := strings.Join(got, ", "); g != c.want {
			t.Errorf("head %q, now %q: got %q, want %q", c.head, c.now, g, c.want)
		}
	}
}

// TestSameEntry: what makes a change that is no file's content.
func TestSameEntry(t *testing.T) {
	file := entry{Type: TypeFile, Mode: 0o644, Size: 1, MD5: [16]byte{1}, SHA256: [32]byte{1}}
	link := entry{Type: TypeSymlink, Mode: 0o777, Target: "a"}
	dir := entry{Type: TypeDir, Mode: 0o755}
	with := func(e entry, change func(*entry)) entry { change(&e); return e }
	for name, c := range map[string]struct {
		a, b entry
		want bool
	}{
		"time":                     {file, with(file, func(e *entry) { e.ModTime = 5 }), true},
		"place in the store":       {file, with(file, func(e *entry) { e.Blob = "x" }), true},
		"dirty":                    {file, with(file, func(e *entry) { e.dirty = true }), false},
		"size":                     {file, with(file, func(e *entry) { e.Size = 2 }), false},
		"same MD5, other SHA-256":  {file, with(file, func(e *entry) { e.SHA256[0] = 2 }), false},
		"same SHA-256, other MD5":  {file, with(file, func(e *entry) { e.MD5[0] = 2 }), true},
		"a state of version 1.0":   {file, with(file, func(e *entry) { e.SHA256 = [32]byte{} }), true},
		"of 1.0, with another MD5": {file, with(file, func(e *entry) { e.SHA256, e.MD5[0] = [32]byte{}, 2 }), false},
		"target":                   {link, with(link, func(e *entry) { e.Target = "b" }), false},
		"mode of a link":           {link, with(link, func(e *entry) { e.Mode = 0o755 }), true},
		"mode of a folder":         {dir, with(dir, func(e *entry) { e.Mode = 0o700 }), false},
		"size of a folder":         {dir, with(dir, func(e *entry) { e.dirty = true }), true},
		"type":                     {dir, with(file, func(e *entry) { e.Mode = 0o755 }), false},
	} {
		if got := sameEntry(&c.a, &c.b); got != c.want {
			t.Errorf("%s: got same %t, want %t", name, got, c.want)
		}
		if got := sameEntry(&c.b, &c.a); got != c.want {
			t.Errorf("%s, the other way round: got same %t, want %t", name, got, c.want)
		}
	}
}

func drawEntries(t *rapid.T, name string) []entry {
	content := rapid.MapOf(rapid.SampledFrom([]string{"a", "a-", "a/b", "b", "b/c/d", "z"}), rapid.SampledFrom([]string{"1", "2", "1:0755", "22"})).Draw(t, name)
	var words []string
	for _, p := range slices.Sorted(maps.Keys(content)) {
		words = append(words, p+":"+content[p])
	}
	return entriesOf(strings.Join(words, " "))
}

// checkDiff: the changes are sorted, and the head with the changes made to it is what the workspace holds.
func checkDiff(t interface {
	Errorf(string, ...any)
}, head, now []entry,
) {
	got, want := map[string]entry{}, map[string]entry{}
	for _, e := range head {
		got[e.Path] = e
	}
	for _, e := range now {
		want[e.Path] = e
	}
	changes := diff(head, now)
	for i, c := range changes {
		if i > 0 && changes[i-1].Path >= c.Path {
			t.Errorf("changes are not sorted: %q, %q", changes[i-1].Path, c.Path)
		}
		if _, had := got[c.Path]; had != (c.Kind != Added) {
			t.Errorf("%s is %s, and it was there: %t", c.Path, c.Kind, had)
		}
		delete(got, c.Path)
		if c.Kind != Deleted {
			got[c.Path] = want[c.Path]
		}
	}
	if !maps.EqualFunc(got, want, func(x, y entry) bool { return sameEntry(&x, &y) }) {
		t.Errorf("after the changes %v the head lists %v, want %v", changes, got, want)
	}
}

func TestDiffProperties(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) { checkDiff(t, drawEntries(t, "head"), drawEntries(t, "now")) })
}

func FuzzDiff(f *testing.F) {
	f.Add([]byte("abc"), []byte("abd"))
	f.Fuzz(func(t *testing.T, head, now []byte) {
		entries := func(b []byte) []entry {
			content := map[string]byte{}
			for i := 0; i+1 < len(b); i += 2 {
				content[string('a'+rune(b[i]%8))] = b[i+1]%3 + 1
			}
			var all []entry
			for _, p := range slices.Sorted(maps.Keys(content)) {
				all = append(all, entry{Path: p, Type: TypeFile, Mode: 0o644, SHA256: [32]byte{content[p]}, Pack: -1})
			}
			return all
		}
		checkDiff(t, entries(head), entries(now))
	})
}
