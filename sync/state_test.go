package wsync

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"
)

const (
	sumMD5   = "098f6bcd4621d373cade4e832627b4f6"
	onePack  = `"layout":"packed","packs":[{"id":"01A.tar","size":2048}],`
	inPack   = `"checksum":"` + sumMD5 + `","size":4,"modified_at":1,"pack":0,"off":512`
	oneState = `{"version":"1.1",` + onePack + `"files":[%s]}`
)

func file(path string) string { return fmt.Sprintf(`{"path":%q,%s}`, path, inPack) }

// TestSeedState: a state of version 1.0, as the format was first written down.
func TestSeedState(t *testing.T) {
	s, err := parseState([]byte(`{"version":"1.0","last_synced_at":1704067200,"files":[
		{"path":"src/main.py","checksum":"`+sumMD5+`","size":1024,"modified_at":1704067100}]}`), Options{})
	if err != nil {
		t.Fatal(err)
	}
	if e := s.Files[0]; e.Path != "src/main.py" || e.Size != 1024 || e.ModTime != 1704067100e9 || e.Mode != 0o644 || e.Type != TypeFile || e.Pack != -1 {
		t.Errorf("got entry %+v", e)
	}
	if err := s.usable(); !errors.Is(err, ErrUnsupported) || !strings.Contains(err.Error(), "mirror") {
		t.Errorf("usable: got error %v, want %v naming the layout", err, ErrUnsupported)
	}
}

func TestRefuses(t *testing.T) {
	deep := strings.Repeat("d/", 64) + "f"
	cases := map[string]string{ // what the error names → the entries
		`"../x"`: file("../x"), `"/abs"`: file("/abs"), `"a//b"`: file("a//b"), `"."`: file("."), `"a/.."`: file("a/.."), `"a/"`: file("a/"), `""`: file(""),
		"NUL": `{"path":"a\u0000b",` + inPack + `}`, "reserved": file(".sandbox-state.tmp"), "deeper": file(deep),
		"longer than 255": file(strings.Repeat("n", 256)), "longer than 4096": file(strings.Repeat(strings.Repeat("n", 250)+"/", 17) + "n"),
		"appears twice": file("a") + "," + file("a"), "below": file("a") + "," + file("a/b"),
		"below \"l\"":               `{"path":"l","type":"symlink","target":"/etc","checksum":"","size":4,"modified_at":0},` + file("l/passwd"),
		"outside of pack":           strings.Replace(file("a"), `"off":512`, `"off":2045`, 1),
		"bytes 9223372036854775807": strings.Replace(file("a"), `"off":512`, `"off":9223372036854775807`, 1),
		"lie outside":               strings.Replace(file("a"), `"off":512`, `"off":-1`, 1),
		"does not exist":            strings.Replace(file("a"), `"pack":0`, `"pack":1`, 1),
		"negative":                  strings.Replace(file("a"), `"pack":0`, `"pack":-1`, 1),
		"size is negative":          strings.Replace(file("a"), `"size":4`, `"size":-4`, 1),
		"checksum":                  strings.Replace(file("a"), sumMD5, strings.ToUpper(sumMD5), 1),
		"64 hexadecimal digits":     strings.Replace(file("a"), `"size":4`, `"sha256":"`+strings.Repeat("ab", 33)+`","size":4`, 1),
		"digits":                    strings.Replace(file("a"), sumMD5, "../../etc/passwd", 1),
		"no checksum":               strings.Replace(file("a"), sumMD5, "", 1),
		"mode":                      strings.Replace(file("a"), `"size"`, `"mode":"99","size"`, 1),
		"unknown type":              strings.Replace(file("a"), `"size"`, `"type":"device","size"`, 1),
		"target":                    `{"path":"l","type":"symlink","checksum":"","size":0,"modified_at":0}`,
		"only a file":               strings.Replace(file("a"), `"size":4`, `"type":"dir","size":0`, 1),
		"no pack and no":            `{"path":"a","checksum":"` + sumMD5 + `","size":4,"modified_at":0}`,
		"blob":                      `{"path":"a","checksum":"` + sumMD5 + `","size":4,"modified_at":0,"blob":"../../x"}`,
		"in base64":                 `{"path_b64":"YQ==",` + inPack + `}`,
		"one of the two":            `{"path":"a","path_b64":"/w==",` + inPack + `}`,
		"files[0].path: given twice, first on line 1": `{"path":"a","path":"b",` + inPack + `}`,
		"out of range": strings.Replace(file("a"), `"modified_at":1`, `"modified_at":9223372037`, 1),
		"whole number": strings.Replace(file("a"), `"size":4`, `"size":4.5`, 1),
		"UTF-8":        `{"path":"` + "\xff" + `",` + inPack + `}`,
		"files[0].path: not an escape that JSON knows": `{"path":"\ud800",` + inPack + `}`,
		"over": strings.Replace(file("a"), `"size":4`, `"size":99999999999999`, 1),
	}
	for want, files := range cases {
		_, err := parseState([]byte(fmt.Sprintf(oneState, files)), Options{})
		if !errors.Is(err, ErrState) || want != "over" && !strings.Contains(err.Error(), want) {
			t.Errorf("%s: got error %v, want %v that names it", want, err, ErrState)
		}
	}
	for want, doc := range map[string]string{
		"1.x": `{"version":"2.0"}`, "state version": `{}`, "after the end": `{"version":"1.1"} x`, "line 1, column 1: want a map, not a list": `[]`, "the text ends within a string": `{"ver`,
		"id": `{"version":"1.1","packs":[{"id":"../x.tar","size":1}]}`, "size": `{"version":"1.1","packs":[{"id":"a.tar","size":99999999999}]}`,
		"created_at": `{"version":"1.1","created_at":"yesterday"}`, "generation": `{"version":"1.1","generation":-1}`, "commit": `{"version":"1.1","commit":"../../x"}`, "deeper": `{"version":"1.1","x":` + strings.Repeat("[", 100),
	} {
		if _, err := parseState([]byte(doc), Options{}); !errors.Is(err, ErrState) && !errors.Is(err, ErrUnsupported) || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: got error %v, want one that names %q", doc, err, want)
		}
	}
	if _, err := parseState([]byte(fmt.Sprintf(oneState, file("a")+","+file("b"))), Options{MaxEntries: 1}); !errors.Is(err, ErrState) {
		t.Errorf("over MaxEntries: got error %v, want %v", err, ErrState)
	}
}

func TestUsable(t *testing.T) {
	for want, doc := range map[string]string{
		"zstd":   `{"version":"1.1","layout":"packed","packs":[{"id":"a.tar.zst","size":1,"enc":"zstd"}],"files":[]}`,
		"mirror": `{"version":"1.1","layout":"mirror","files":[]}`,
	} {
		s, err := parseState([]byte(doc), Options{})
		if err != nil {
			t.Errorf("%s: parse: %v", want, err)
			continue
		}
		if err := s.usable(); !errors.Is(err, ErrUnsupported) || !strings.Contains(err.Error(), want) {
			t.Errorf("got error %v, want %v naming %s", err, ErrUnsupported, want)
		}
	}
}

// TestKeepsUnknown: what a later 1.x wrote survives a rewrite.
func TestKeepsUnknown(t *testing.T) {
	doc := `{"version":"1.9","zone": {"a": [1, 2]},` + strings.Replace(onePack, `"size":2048`, `"size":2048,"tier":"cold"`, 1) +
		`"files":[` + strings.Replace(file("a"), `"size"`, `"link_of":"b","size"`, 1) + `]}`
	s, err := parseState([]byte(doc), Options{})
	if err != nil {
		t.Fatal(err)
	}
	out := s.encode()
	for _, want := range []string{`"zone":{"a":[1,2]}`, `"tier":"cold"`, `"link_of":"b"`} {
		if !bytes.Contains(out, []byte(want)) {
			t.Errorf("lost %s in %s", want, out)
		}
	}
}

func TestEncode(t *testing.T) {
	s := &state{
		Version: stateVersion, LastSyncedAt: 5, Workspace: "w", Commit: newULID(time.Now()), Generation: 2, Layout: layoutPacked,
		CreatedAt: time.Now().UTC().Truncate(time.Millisecond), Writer: Writer{Worker: "w\"", Job: "j", Attempt: 1, Fence: 1 << 63},
		Packs: []pack{{ID: "A.tar", Size: 4096, SHA256: [32]byte{1}, Enc: encNone}},
		Files: []entry{
			{Path: "a\n\"\\\x7f", Type: TypeFile, Size: 3, Mode: 0o755, ModTime: -1, MD5: [16]byte{1}, SHA256: [32]byte{2}, Pack: 0, Off: 512},
			{Path: "bad\xff", Type: TypeSymlink, Mode: 0o777, Size: 2, Target: "\xfe/", Pack: -1},
			{Path: "e", Type: TypeDir, Mode: 0o1700, Pack: -1},
			{Path: "z", Type: TypeFile, Size: 9, Mode: 0o4755, MD5: [16]byte{3}, Pack: -1, Blob: strings.Repeat("ab", 32)},
		},
	}
	out := s.encode()
	if !json.Valid(out) {
		t.Fatalf("not JSON: %s", out)
	}
	again, err := parseState(out, Options{})
	if err != nil {
		t.Fatal(err)
	}
	if second := again.encode(); !bytes.Equal(second, out) {
		t.Errorf("got\n%s\nafter a round trip, want\n%s", second, out)
	}
	if again.Files[0].ModTime != -1 || again.Writer != s.Writer || !again.CreatedAt.Equal(s.CreatedAt) {
		t.Errorf("got %+v, want %+v", again, s)
	}
}

func FuzzParseState(f *testing.F) {
	f.Add([]byte(fmt.Sprintf(oneState, file("a"))))
	f.Add([]byte(`{"version":"1.0","files":[{"path_b64":"/w==","type":"symlink","target":"x","size":1}],"x":[{"y":null}]}`))
	f.Add([]byte(`{"version":"1.1","writer":{"fence":1},"parents":[],"created_at":"2026-01-01T00:00:00Z"}`))
	f.Fuzz(func(t *testing.T, data []byte) {
		s, err := parseState(data, Options{})
		if err != nil {
			return
		}
		if !json.Valid(data) {
			t.Errorf("accepted what is no JSON: %q", data)
		}
		out := s.encode()
		again, err := parseState(out, Options{})
		if err != nil {
			t.Fatalf("%v in our own encoding %s of %q", err, out, data)
		}
		if second := again.encode(); !bytes.Equal(out, second) {
			t.Errorf("encoding is not stable:\n%s\n%s", out, second)
		}
		for i := range s.Files {
			if err := checkPath(s.Files[i].Path); err != nil {
				t.Errorf("accepted the path %q: %v", s.Files[i].Path, err)
			}
		}
	})
}

func TestULID(t *testing.T) {
	now := time.UnixMilli(1_700_000_000_123)
	a, b := newULID(now), newULID(now.Add(time.Millisecond))
	if !isULID(a) || !isULID(b) || a >= b || a[:10] != "01HF7YAT3V" {
		t.Errorf("got %s and %s, want two ULIDs in order that begin with the time", a, b)
	}
	if newULID(now) == a {
		t.Error("two ULIDs of one millisecond are equal")
	}
}
