package job

import (
	"bytes"
	"encoding/json"
	"reflect"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

func TestNewIDsRise(t *testing.T) {
	const workers, each = 4, 2000
	ids := make([][]ID, workers)
	before := time.Now().UnixMilli()
	var wg sync.WaitGroup
	for w := range ids {
		wg.Go(func() {
			for range each {
				ids[w] = append(ids[w], NewID())
			}
		})
	}
	wg.Wait()
	after := time.Now().UnixMilli()
	seen := map[ID]bool{}
	for _, list := range ids {
		if !slices.IsSorted(list) {
			t.Error("the ids of one goroutine do not rise")
		}
		for _, id := range list {
			if got, err := ParseID(string(id)); err != nil || got != id || seen[id] || !idRE.MatchString(string(id)) {
				t.Fatalf("got %v, %v, seen %v, want %v once", got, err, seen[id], id)
			}
			seen[id] = true
			if ms := idMillis(id); ms < before || ms > after {
				t.Fatalf("got %d ms in %v, want %d to %d", ms, id, before, after)
			}
		}
	}
}

// idMillis reads the time of an ID: its first ten digits.
func idMillis(id ID) int64 {
	var ms int64
	for _, c := range id[:10] {
		ms = ms<<5 | int64(strings.IndexRune(crockford, c))
	}
	return ms
}

func TestEncodeID(t *testing.T) {
	for _, tc := range []struct {
		hi, lo uint64
		want   ID
	}{
		{0, 0, "00000000000000000000000000"},
		{0, 1, "00000000000000000000000001"},
		{0, 1 << 63, "00000000000008000000000000"},
		{1 << 16, 0, "00000000010000000000000000"},
		{1<<64 - 1, 1<<64 - 1, "7ZZZZZZZZZZZZZZZZZZZZZZZZZ"},
	} {
		if got := encodeID(tc.hi, tc.lo); got != tc.want {
			t.Errorf("encodeID(%x, %x): got %s, want %s", tc.hi, tc.lo, got, tc.want)
		}
	}
}

func TestParseID(t *testing.T) {
	for in, want := range map[string]ID{
		"01JDQK5Y8ZRT6H2V9WXN3M4P7Q":  "01JDQK5Y8ZRT6H2V9WXN3M4P7Q",
		"01jdqk5y8zrt6h2v9wxn3m4p7q":  "01JDQK5Y8ZRT6H2V9WXN3M4P7Q",
		"81JDQK5Y8ZRT6H2V9WXN3M4P7Q":  "", // more than 128 bits
		"01JDQK5Y8ZRT6H2V9WXN3M4P7":   "",
		"01JDQK5Y8ZRT6H2V9WXN3M4P7QQ": "",
		"01JDQK5Y8ZRT6H2V9WXN3M4P7U":  "",
		"0LJDQK5Y8ZRT6H2V9WXN3M4P7Q":  "",
		"01JDQK5Y8ZRT.H2V9WXN3M4P7Q":  "", // would split a subject
		"":                            "",
	} {
		if got, err := ParseID(in); got != want || (err == nil) != (want != "") {
			t.Errorf("ParseID(%q): got %q and %v, want %q", in, got, err, want)
		}
	}
}

func FuzzParseID(f *testing.F) {
	for _, s := range []string{"01JDQK5Y8ZRT6H2V9WXN3M4P7Q", "ı1jdqk5y8zrt6h2v9wxn3m4p7q", "", "\x1b"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, s string) {
		id, err := ParseID(s)
		if err != nil {
			if id != "" || strings.ContainsFunc(err.Error(), steersTerminal) {
				t.Fatalf("got %q and %q", id, err)
			}
			return
		}
		if again, err := ParseID(string(id)); err != nil || again != id || !idRE.MatchString(string(id)) {
			t.Fatalf("got %q and %v, want %q", again, err, id)
		}
	})
}

func TestBytes(t *testing.T) {
	for in, want := range map[string]Bytes{
		"0": 0, "1": 1, "512B": 512, "1k": 1 << 10, "1KiB": 1 << 10, "2kb": 2 << 10, "512MiB": 512 << 20,
		"2g": 2 << 30, "1TiB": 1 << 40, "8388607TiB": 8388607 << 40,
	} {
		var got Bytes
		if err := got.UnmarshalText([]byte(in)); err != nil || got != want {
			t.Errorf("%q: got %d and %v, want %d", in, got, err, want)
		}
	}
	for _, in := range []string{"", "-1", "1.5g", "1x", "g", "8388608TiB", "9223372036854775808", "1 g", "1ki", "1gibb", "0x10"} {
		var got Bytes
		if err := got.UnmarshalText([]byte(in)); err == nil {
			t.Errorf("%q: got %d, want an error", in, got)
		}
	}
}

// FuzzValues: what is read is written in a form that is read as the same.
func FuzzValues(f *testing.F) {
	for _, s := range []string{"90s", "1h30m", "512MiB", "2g", "0644", "-1", "1.5h", "9223372036854775807", ""} {
		f.Add(s)
	}
	type value interface {
		MarshalText() ([]byte, error)
		UnmarshalText([]byte) error
	}
	f.Fuzz(func(t *testing.T, s string) {
		for _, pair := range [][2]value{
			{new(textDuration), new(textDuration)}, {new(textBytes), new(textBytes)}, {new(textMode), new(textMode)},
		} {
			if err := pair[0].UnmarshalText([]byte(s)); err != nil {
				if strings.ContainsFunc(err.Error(), steersTerminal) {
					t.Fatalf("got %q, which can't be shown", err)
				}
				continue
			}
			text, err := pair[0].MarshalText()
			if err != nil {
				t.Fatal(err)
			}
			if err := pair[1].UnmarshalText(text); err != nil {
				t.Fatalf("%q is written as %q: %v", s, text, err)
			}
			if again, _ := pair[1].MarshalText(); !bytes.Equal(again, text) {
				t.Fatalf("got %q, want %q", again, text)
			}
		}
	})
}

// The values' methods are split between value and pointer; these join them.
type (
	textDuration struct{ Duration }
	textBytes    struct{ Bytes }
	textMode     struct{ Mode }
)

func TestReasons(t *testing.T) {
	seen := map[Reason]bool{}
	for _, r := range Reasons() {
		if seen[r] || !r.Valid() || !r.Outcome().Valid() || r.Outcome() == Succeeded {
			t.Errorf("%s: seen %v, valid %v, outcome %s", r, seen[r], r.Valid(), r.Outcome())
		}
		seen[r] = true
	}
	if Reason("x").Valid() || Outcome("").Valid() || StepStatus("").Valid() {
		t.Error("a word that is in no list is valid")
	}
	// Each reason's comment names its outcome.
	c := readComments(t)
	for _, r := range Reasons() {
		got, _, _ := strings.Cut(c.ofWord(reflect.TypeFor[Reason](), string(r)), ":")
		if want := string(r.Outcome()); got != want {
			t.Errorf("%s: its comment says outcome %q, want %q", r, got, want)
		}
	}
}

func TestStepLabel(t *testing.T) {
	if got, want := (&Step{}).Label(2), "3"; got != want {
		t.Errorf("got %q, want %q", got, want)
	}
	if got, want := (&Step{Name: "x"}).Label(2), "x"; got != want {
		t.Errorf("got %q, want %q", got, want)
	}
	if got, want := (&Step{Run: "x", List: "."}).Kind(), ""; got != want {
		t.Errorf("got %q, want %q", got, want)
	}
}

func TestResultRoundTrip(t *testing.T) {
	code := 137
	at := time.Date(2026, 1, 2, 3, 4, 5, 6, time.UTC)
	want := &Result{
		Version: Version, JobID: NewID(), Generation: 1, Queue: "default", Labels: map[string]string{"a": "<b>"},
		Outcome: Failed, Reason: ReasonOOM, Message: "out of memory", Attempt: 2, Fence: 1<<64 - 1, Relaxed: []string{"network_open"},
		SubmittedAt: at, StartedAt: at, FinishedAt: at, Phases: Phases{Queue: Duration(time.Second)},
		Steps: []StepResult{{Name: "1", Status: StepFailed, Reason: ReasonOOM, ExitCode: &code, Signal: "SIGKILL", Output: Output{Head: "\x1b[0m\u2028", Bytes: 5}}},
		Workspace: &WorkspaceResult{
			Prefix: "a", Changes: []Change{{Path: "x", Kind: "added"}},
		},
	}
	data, err := json.Marshal(want)
	if err != nil {
		t.Fatal(err)
	}
	got := &Result{}
	if err := json.Unmarshal(data, got); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	if err := fits(t, compile(t, readSchema(t, "result.schema.json")), data); err != nil {
		t.Errorf("the schema refuses %s: %v", data, err)
	}
}

func TestEncode(t *testing.T) {
	j := &Job{Image: "alpine", Steps: []Step{{Run: "echo <a> && b"}}}
	data, err := Encode(j)
	if want := `{"image":"alpine","steps":[{"run":"echo <a> && b"}]}`; err != nil || string(data) != want {
		t.Errorf("got %s and %v, want %s", data, err, want)
	}
	if !json.Valid(Schema()) {
		t.Error("a schema is no JSON")
	}
	text := strings.Repeat("x", MaxSpecBytes)
	j.Steps[0].Stdin = &text
	if _, err := Encode(j); err == nil {
		t.Error("got no error for a job of more than 1 MiB")
	}
}
