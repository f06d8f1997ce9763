package wsync

import (
	"bytes"
	"crypto/md5" //nolint:gosec // part of the contract
	"crypto/sha256"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"testing"
	"time"
)

// TestTrustworthy: a file that may still change within the tick of its own times is read again.
func TestTrustworthy(t *testing.T) {
	now := int64(time.Hour)
	for _, c := range []struct {
		name         string
		mtime, ctime int64
		want         bool
	}{
		{"old", 1, 1, true},
		{"just old enough", now - racyGuard - 1, now - racyGuard - 1, true},
		{"changed within the guard", 1, now - racyGuard, false},
		{"written within the guard", now - racyGuard, 1, false},
		{"written in the future", now + 1, 1, false},
		{"no change time", 1, 0, false},
	} {
		if got := (signature{mtime: c.mtime, ctime: c.ctime}).trustworthy(now); got != c.want {
			t.Errorf("%s: got %t, want %t", c.name, got, c.want)
		}
	}
	if racyGuard < int64(10*time.Millisecond) {
		t.Errorf("the guard is %d ns, want more than a tick of the slowest kernel, 10 ms", racyGuard)
	}
}

// TestCommitTime: versions sort by their time, so each is after the one before, whatever the clock says.
func TestCommitTime(t *testing.T) {
	now := time.Date(2026, 1, 2, 3, 4, 5, 999_999, time.UTC)
	for name, c := range map[string]struct{ before, want time.Time }{
		"clock ahead":  {now.Add(-time.Hour), now.Truncate(time.Millisecond)},
		"same instant": {now, now.Add(time.Millisecond).Truncate(time.Millisecond)},
		"clock behind": {now.Add(time.Hour).Truncate(time.Millisecond), now.Add(time.Hour).Truncate(time.Millisecond).Add(time.Millisecond)},
	} {
		p := &push{syncer: &Syncer{now: func() time.Time { return now }}, base: &Base{state: &state{CreatedAt: c.before}}}
		if got := p.commitTime(); !got.Equal(c.want) {
			t.Errorf("%s: got %v, want %v", name, got, c.want)
		}
	}
}

// TestMassDelete: more than half and more than 100, or everything.
func TestMassDelete(t *testing.T) {
	for _, c := range []struct {
		had, deleted int
		refused      bool
	}{
		{150, 100, false}, // most of it, and few
		{202, 101, false}, // exactly half
		{201, 101, true},
		{1000, 500, false},
		{1000, 501, true},
		{1, 1, true}, // everything
		{0, 0, false},
	} {
		p := &push{base: &Base{state: &state{Files: make([]entry, c.had)}}, scan: &scan{entries: make([]entry, c.had-c.deleted)}}
		changes := slices.Repeat([]Change{{Path: "f", Kind: Deleted}}, c.deleted)
		changes = append(changes, Change{Path: "g", Kind: Modified})
		if err := p.checkMassDelete(changes); errors.Is(err, ErrMassDelete) != c.refused {
			t.Errorf("%d of %d: got error %v, want refused %t", c.deleted, c.had, err, c.refused)
		}
		p.opts.AllowMassDelete = true
		if err := p.checkMassDelete(changes); err != nil {
			t.Errorf("%d of %d, allowed: got error %v", c.deleted, c.had, err)
		}
	}
}

// TestRepack: packs that are nearly dead, and the emptiest ones when there are too many, are written anew.
func TestRepack(t *testing.T) {
	const size = 4 << 20 // more than an eighth of a full pack
	type pk struct {
		live  int64
		size  int64
		dirty bool
	}
	many := func(n int) []pk {
		var all []pk
		for i := range n {
			all = append(all, pk{live: int64(i + 1), size: 1024, dirty: n > 64 && i < n-32})
		}
		return all
	}
	for name, packs := range map[string][]pk{
		"a quarter lives":         {{size / 4, size, false}},
		"less than a quarter":     {{size/4 - 1, size, true}},
		"a small pack may be so":  {{1, 1 << 20, false}},
		"none lives":              {{0, size, false}},
		"64 are kept":             many(64),
		"65: the fullest 32 stay": many(65),
	} {
		p := &push{syncer: New(nil, Options{}), scan: &scan{nodes: map[string]Node{}}}
		for i, k := range packs {
			path := fmt.Sprintf("f%03d", i)
			p.packs = append(p.packs, pack{Size: k.size})
			p.scan.entries = append(p.scan.entries, entry{Path: path, Type: TypeFile, Pack: i, Size: k.live})
			p.scan.nodes[path] = Node{}
		}
		p.repack()
		for i, k := range packs {
			if got := p.scan.entries[i].dirty; k.live > 0 && got != k.dirty {
				t.Errorf("%s: pack %d of %d: got written anew %t, want %t", name, i, len(packs), got, k.dirty)
			}
		}
	}
}

// TestSpans: what is fetched of a pack.
func TestSpans(t *testing.T) {
	const size = 8 << 20
	whole := []span{{0, size}}
	var scattered []*entry
	for i := range maxSpans + 1 {
		scattered = append(scattered, &entry{Off: int64(i) * (rangeGap + 2), Size: 1})
	}
	for name, c := range map[string]struct {
		size    int64
		entries []*entry
		want    []span
	}{
		"one":                       {size, []*entry{{Off: 100, Size: 10}}, []span{{100, 110}}},
		"near":                      {size, []*entry{{Off: 0, Size: 10}, {Off: 10 + rangeGap, Size: 1}}, []span{{0, 11 + rangeGap}}},
		"far":                       {size, []*entry{{Off: 0, Size: 10}, {Off: 11 + rangeGap, Size: 1}}, []span{{0, 10}, {11 + rangeGap, 12 + rangeGap}}},
		"one within another":        {size, []*entry{{Off: 0, Size: 100}, {Off: 5, Size: 10}}, []span{{0, 100}}},
		"half of it":                {size, []*entry{{Off: 0, Size: size / 2}}, whole},
		"less than half":            {size, []*entry{{Off: 0, Size: size/2 - 1}}, []span{{0, size/2 - 1}}},
		"small pack":                {smallPack, []*entry{{Off: 0, Size: 1}}, []span{{0, smallPack}}},
		"a little more than small":  {smallPack + 1, []*entry{{Off: 0, Size: 1}}, []span{{0, 1}}},
		"too many pieces":           {size, scattered, whole},
		"as many pieces as allowed": {size, scattered[:1], []span{{0, 1}}},
	} {
		f := packFetch{pack: &pack{Size: c.size}, entries: c.entries}
		if got := f.spans(); !slices.Equal(got, c.want) {
			t.Errorf("%s: got %v, want %v", name, got, c.want)
		}
	}
	if f := (packFetch{pack: &pack{Size: size}, entries: scattered[:maxSpans]}); len(f.spans()) != maxSpans {
		t.Errorf("%d pieces: got %d spans, want each", maxSpans, len(f.spans()))
	}
}

// TestHashingReader: the end of what differs from its checksum is never given out.
func TestHashingReader(t *testing.T) {
	content := strings.Repeat("0123456789", 1000)
	sum := sha256.Sum256([]byte(content))
	for name, c := range map[string]struct {
		body    string
		changed bool
	}{
		"same":    {content, false},
		"other":   {"X" + content[1:], true},
		"shorter": {content[:9999], true},
		"longer":  {content + "more", false}, // the caller's limit cuts it
	} {
		r := &hashingReader{r: io.LimitReader(strings.NewReader(c.body), int64(len(content))), md5: md5.New(), sha: sha256.New(), want: sum[:], left: int64(len(content))} //nolint:gosec // see the import
		got, err := io.ReadAll(r)
		if c.changed != errors.Is(err, errChanged) || c.changed != r.changed {
			t.Errorf("%s: got error %v, changed %t, want changed %t", name, err, r.changed, c.changed)
		}
		if c.changed == bytes.Equal(got, []byte(content)) || c.changed && len(got) >= len(content) {
			t.Errorf("%s: got %d bytes of %d given out", name, len(got), len(c.body))
		}
	}
}

// TestPauses: jitter keeps a pause within its second half, and pauses double.
func TestPauses(t *testing.T) {
	for range 100 {
		if got := jitter(time.Second); got < time.Second/2 || got > time.Second {
			t.Fatalf("jitter of 1s: got %v, want 0.5s to 1s", got)
		}
	}
	if got := backoff(0); got != 0 {
		t.Errorf("before the first try: got %v, want 0", got)
	}
	for try, most := range map[int]time.Duration{1: 50 * time.Millisecond, 2: 100 * time.Millisecond, 4: 400 * time.Millisecond} {
		if got := backoff(try); got < most/2 || got > most {
			t.Errorf("before try %d: got %v, want %v to %v", try, got, most/2, most)
		}
	}
}

// TestPackTime: every tar can read the time, whatever the file's own is.
func TestPackTime(t *testing.T) {
	for ns, want := range map[int64]int64{-1: 0, -1 << 63: 0, 0: 0, 1_999_999_999: 1, 1 << 62: 1 << 62 / 1_000_000_000, 1<<63 - 1: 1<<33 - 1} {
		if got := packTime(ns).Unix(); got != want {
			t.Errorf("%d ns: got %d, want %d", ns, got, want)
		}
	}
}

// TestTotalBytes: a workspace of exactly MaxBytes is accepted.
func TestTotalBytes(t *testing.T) {
	file := func(path string, size int64) entry {
		return entry{Path: path, Type: TypeFile, Size: size, MD5: [16]byte{1}, Pack: -1, Blob: "x"}
	}
	for over, files := range map[bool][]entry{
		false: {file("a", 60), file("b", 40)},
		true:  {file("a", 60), file("b", 41)},
	} {
		err := checkState(&state{Layout: layoutPacked, Files: files}, Options{MaxBytes: 100})
		if over != (err != nil) {
			t.Errorf("got error %v, want one: %t", err, over)
		}
	}
}
