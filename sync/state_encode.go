package wsync

import (
	"encoding/base64"
	"encoding/hex"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"
	"unicode/utf8"
)

const createdLayout = "2006-01-02T15:04:05.000Z"

// Encode returns the stored form: equal states give equal bytes. One line per entry, for people and diffs.
func (s *state) encode() []byte {
	w := &jsonWriter{b: make([]byte, 0, 1024+256*len(s.Files))}
	w.open('{')
	w.str("version", s.Version)
	w.num("last_synced_at", s.LastSyncedAt)
	w.optional("workspace", s.Workspace)
	w.optional("commit", s.Commit)
	w.optional("parent", s.Parent)
	if len(s.Parents) > 0 {
		w.name("parents")
		w.open('[')
		for _, c := range s.Parents {
			w.item()
			w.b = appendString(w.b, c)
		}
		w.close(']')
	}
	w.num("generation", s.Generation)
	w.writer(&s.Writer)
	if !s.CreatedAt.IsZero() {
		w.str("created_at", s.CreatedAt.UTC().Format(createdLayout))
	}
	w.optional("layout", s.Layout)
	w.name("totals")
	w.open('{')
	w.num("files", s.Totals.Files)
	w.num("bytes", s.Totals.Bytes)
	w.close('}')
	w.optional("ignore_sha256", s.IgnoreSHA256)
	w.fields(s.extra)
	w.name("packs")
	w.open('[')
	for i := range s.Packs {
		w.pack(&s.Packs[i])
	}
	w.close(']')
	w.name("files")
	w.open('[')
	for i := range s.Files {
		w.entry(&s.Files[i])
	}
	w.b = append(w.b, '\n')
	w.close(']')
	w.close('}')
	return append(w.b, '\n')
}

// jsonWriter appends JSON. comma tells whether the next item needs one before it.
type jsonWriter struct {
	b     []byte
	comma bool
}

func (w *jsonWriter) open(c byte)  { w.b, w.comma = append(w.b, c), false }
func (w *jsonWriter) close(c byte) { w.b, w.comma = append(w.b, c), true }

func (w *jsonWriter) item() {
	if w.comma {
		w.b = append(w.b, ',')
	}
	w.comma = true
}

func (w *jsonWriter) name(name string) {
	w.item()
	w.b = append(appendString(w.b, name), ':')
}

func (w *jsonWriter) str(name, v string) {
	w.name(name)
	w.b = appendString(w.b, v)
}

func (w *jsonWriter) optional(name, v string) {
	if v != "" {
		w.str(name, v)
	}
}

func (w *jsonWriter) num(name string, v int64) {
	w.name(name)
	w.b = strconv.AppendInt(w.b, v, 10)
}

func (w *jsonWriter) hex(name string, v []byte) {
	w.name(name)
	w.b = append(hex.AppendEncode(append(w.b, '"'), v), '"')
}

// raw writes a string, in base64 under another name if it is not UTF-8.
func (w *jsonWriter) raw(name, v string) {
	if utf8.ValidString(v) {
		w.str(name, v)
		return
	}
	w.str(name+"_b64", base64.StdEncoding.EncodeToString([]byte(v)))
}

func (w *jsonWriter) fields(extra []field) {
	extra = slices.Clone(extra)
	slices.SortFunc(extra, func(a, b field) int { return strings.Compare(a.name, b.name) })
	for _, f := range extra {
		w.name(f.name)
		w.b = append(w.b, f.value...)
	}
}

func (w *jsonWriter) writer(v *Writer) {
	w.name("writer")
	w.open('{')
	w.str("worker", v.Worker)
	w.str("job", v.Job)
	w.num("attempt", int64(v.Attempt))
	w.name("fence")
	w.b = strconv.AppendUint(w.b, v.Fence, 10)
	w.close('}')
}

func (w *jsonWriter) pack(k *pack) {
	w.item()
	w.b = append(w.b, '\n')
	w.open('{')
	w.str("id", k.ID)
	w.num("size", k.Size)
	if k.SHA256 != [32]byte{} {
		w.hex("sha256", k.SHA256[:])
	}
	w.optional("enc", k.Enc)
	w.fields(k.extra)
	w.close('}')
}

func (w *jsonWriter) entry(e *entry) {
	w.item()
	w.b = append(w.b, '\n')
	w.open('{')
	w.raw("path", e.Path)
	if e.Type != TypeFile {
		w.str("type", typeNames[e.Type])
	}
	if e.MD5 == [16]byte{} {
		w.str("checksum", "")
	} else {
		w.hex("checksum", e.MD5[:])
	}
	w.num("size", e.Size)
	w.num("modified_at", floorSeconds(e.ModTime))
	if e.ModTime%int64(time.Second) != 0 {
		w.num("mtime_ns", e.ModTime)
	}
	if e.Mode != defaultMode(e.Type) {
		w.str("mode", fmt.Sprintf("%04o", e.Mode))
	}
	if e.SHA256 != [32]byte{} {
		w.hex("sha256", e.SHA256[:])
	}
	if e.Target != "" {
		w.raw("target", e.Target)
	}
	if e.Pack >= 0 {
		w.num("pack", int64(e.Pack))
		w.num("off", e.Off)
	}
	w.optional("blob", e.Blob)
	w.fields(e.extra)
	w.close('}')
}

func floorSeconds(ns int64) int64 {
	s := ns / int64(time.Second)
	if ns%int64(time.Second) < 0 {
		s--
	}
	return s
}

const hexDigits = "0123456789abcdef"

// appendString appends a JSON string. s is UTF-8: what comes from outside is checked or goes through raw.
func appendString(b []byte, s string) []byte {
	s = strings.ToValidUTF8(s, "\uFFFD")
	b = append(b, '"')
	for i := range len(s) {
		switch c := s[i]; {
		case c == '"' || c == '\\':
			b = append(b, '\\', c)
		case c < 0x20 || c == 0x7f:
			b = append(b, '\\', 'u', '0', '0', hexDigits[c>>4], hexDigits[c&15])
		default:
			b = append(b, c)
		}
	}
	return append(b, '"')
}
