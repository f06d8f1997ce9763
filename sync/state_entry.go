package wsync

import (
	"encoding/base64"
	"encoding/hex"
	"fmt"
	"strconv"
	"strings"
	"time"
	"unicode/utf8"

	"slipway/internal/document"
)

// entryJSON is what needs the whole entry to be understood.
type entryJSON struct {
	paths, targets  int
	sec, ns         int64
	hasNS, hasMode  bool
	hasPack, hasOff bool
}

func (p *stateParser) entry() error {
	if len(p.out.Files) >= p.opts.MaxEntries {
		return fmt.Errorf("more than %d entries", p.opts.MaxEntries)
	}
	e, j := entry{Type: TypeFile, Pack: -1}, entryJSON{}
	if err := p.Object(func(name string) error { return p.entryMember(name, &e, &j) }); err != nil {
		return err
	}
	if err := finishEntry(&e, &j); err != nil {
		return fmt.Errorf("entry %q: %w", e.Path, err)
	}
	p.out.Files = append(p.out.Files, e)
	return nil
}

func (p *stateParser) entryMember(name string, e *entry, j *entryJSON) (err error) {
	var n int64
	switch name {
	case "path":
		j.paths++
		e.Path, err = p.String()
	case "path_b64":
		j.paths++
		e.Path, err = p.base64String()
	case "type":
		e.Type, err = p.nodeType()
	case "size":
		e.Size, err = p.Int()
	case "mode":
		j.hasMode = true
		e.Mode, err = p.mode()
	case "modified_at":
		j.sec, err = p.Int()
	case "mtime_ns":
		j.hasNS = true
		j.ns, err = p.Int()
	case "checksum":
		err = p.hexString(e.MD5[:])
	case "sha256":
		err = p.hexString(e.SHA256[:])
	case "target":
		j.targets++
		e.Target, err = p.String()
	case "target_b64":
		j.targets++
		e.Target, err = p.base64String()
	case "pack":
		j.hasPack = true
		n, err = p.Int()
		e.Pack = int(n)
	case "off":
		j.hasOff = true
		e.Off, err = p.Int()
	case "blob":
		e.Blob, err = p.String()
	default:
		err = p.unknown(name, &e.extra)
	}
	return err
}

func finishEntry(e *entry, j *entryJSON) error {
	switch {
	case j.paths != 1:
		return fmt.Errorf("needs path or path_b64, one of the two")
	case j.targets > 1:
		return fmt.Errorf("has target and target_b64")
	case j.hasPack != j.hasOff:
		return fmt.Errorf("needs pack and off together")
	case j.hasPack && e.Pack < 0:
		return fmt.Errorf("pack is negative")
	case j.sec < -maxSeconds || j.sec > maxSeconds:
		return fmt.Errorf("modified_at is out of range")
	}
	if e.ModTime = j.sec * int64(time.Second); j.hasNS {
		e.ModTime = j.ns
	}
	if !j.hasMode {
		e.Mode = defaultMode(e.Type)
	}
	return nil
}

// maxSeconds is the last second that nanoseconds in 64 bits can tell.
const maxSeconds = 1<<63/1_000_000_000 - 1

func (p *stateParser) nodeType() (NodeType, error) {
	v, err := p.String()
	if err != nil {
		return 0, err
	}
	for t, name := range typeNames {
		if v == name {
			return t, nil
		}
	}
	return 0, fmt.Errorf("unknown type %s", document.Quote(v))
}

var typeNames = map[NodeType]string{TypeFile: "file", TypeDir: "dir", TypeSymlink: "symlink"}

func (p *stateParser) mode() (uint32, error) {
	v, err := p.String()
	if err != nil {
		return 0, err
	}
	m, err := strconv.ParseUint(v, 8, 32)
	if err != nil || m > 0o7777 {
		return 0, fmt.Errorf("%s is not an octal mode", document.Quote(v))
	}
	return uint32(m), nil
}

// hexString reads exactly the digits of dst, in lower case, or an empty string.
func (p *stateParser) hexString(dst []byte) error {
	v, err := p.String()
	if err != nil || v == "" {
		return err
	}
	if len(v) != 2*len(dst) || strings.ToLower(v) != v {
		return fmt.Errorf("%s is not %d hexadecimal digits in lower case", document.Quote(v), 2*len(dst))
	}
	if _, err = hex.Decode(dst, []byte(v)); err != nil {
		return fmt.Errorf("%s is not %d hexadecimal digits in lower case", document.Quote(v), 2*len(dst))
	}
	return nil
}

func (p *stateParser) base64String() (string, error) {
	v, err := p.String()
	if err != nil {
		return "", err
	}
	b, err := base64.StdEncoding.Strict().DecodeString(v)
	if err != nil || strings.ContainsAny(v, "\r\n") {
		return "", fmt.Errorf("not base64")
	}
	if utf8.Valid(b) {
		return "", fmt.Errorf("is UTF-8, which is not written in base64")
	}
	return string(b), nil
}
