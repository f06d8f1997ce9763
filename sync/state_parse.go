package wsync

import (
	"bytes"
	"encoding/json"
	"fmt"
	"sort"
	"strconv"
	"strings"
	"time"
)

// ParseState reads a state file of version 1.x and checks every rule of it, within
// the limits of opts. A state comes from outside and is not trusted: one entry that
// breaks a rule refuses all of it. The error is an ErrState, or an ErrUnsupported for
// another version, and names the entry.
func ParseState(data []byte, opts Options) (*State, error) {
	opts = opts.withDefaults()
	if int64(len(data)) > opts.MaxStateBytes {
		return nil, fmt.Errorf("%w: %d bytes, the limit is %d", ErrState, len(data), opts.MaxStateBytes)
	}
	p := &stateParser{jsonReader: jsonReader{data: data}, opts: opts}
	if err := p.state(); err != nil {
		return nil, fmt.Errorf("%w: %w", ErrState, err)
	}
	s := &p.out
	if major, _, ok := strings.Cut(s.Version, "."); !ok || major != "1" {
		return nil, fmt.Errorf("%w: state version %q: %w, which reads 1.x", ErrState, s.Version, ErrUnsupported)
	}
	sort.SliceStable(s.Files, func(i, j int) bool { return s.Files[i].Path < s.Files[j].Path })
	if err := checkState(s, opts); err != nil {
		return nil, fmt.Errorf("%w: %w", ErrState, err)
	}
	return s, nil
}

type stateParser struct {
	jsonReader
	opts Options
	out  State
}

func (p *stateParser) state() error {
	if err := p.object(p.stateMember); err != nil {
		return err
	}
	return p.end()
}

func (p *stateParser) stateMember(name string) (err error) {
	s := &p.out
	switch name {
	case "version":
		s.Version, err = p.str()
	case "last_synced_at":
		s.LastSyncedAt, err = p.integer()
	case "workspace":
		s.Workspace, err = p.str()
	case "commit":
		s.Commit, err = p.str()
	case "parent":
		s.Parent, err = p.str()
	case "parents":
		err = p.array(func() error { return p.parent() })
	case "generation":
		s.Generation, err = p.integer()
	case "writer":
		err = p.writer()
	case "created_at":
		err = p.createdAt()
	case "layout":
		s.Layout, err = p.str()
	case "totals":
		err = p.totals()
	case "ignore_sha256":
		s.IgnoreSHA256, err = p.str()
	case "packs":
		err = p.array(p.pack)
	case "files":
		err = p.array(p.entry)
	default:
		err = p.unknown(name, &s.extra)
	}
	return at(name, err)
}

// at names the member in which an error lies, once.
func at(name string, err error) error {
	if err == nil {
		return nil
	}
	return fmt.Errorf("%s: %w", name, err)
}

func (p *stateParser) parent() error {
	c, err := p.str()
	p.out.Parents = append(p.out.Parents, c)
	if len(p.out.Parents) > maxParents {
		return p.errorf("more than %d", maxParents)
	}
	return err
}

func (p *stateParser) writer() error {
	start := p.pos
	if err := p.skip(0); err != nil {
		return err
	}
	return json.Unmarshal(p.data[start:p.pos], &p.out.Writer)
}

func (p *stateParser) createdAt() error {
	v, err := p.str()
	if err == nil && v != "" {
		p.out.CreatedAt, err = time.Parse(time.RFC3339Nano, v)
	}
	return err
}

func (p *stateParser) totals() error {
	return p.object(func(name string) (err error) {
		switch name {
		case "files":
			p.out.Totals.Files, err = p.integer()
		case "bytes":
			p.out.Totals.Bytes, err = p.integer()
		default:
			err = p.skip(0)
		}
		return err
	})
}

func (p *stateParser) pack() error {
	if len(p.out.Packs) >= p.opts.MaxEntries {
		return p.errorf("more than %d", p.opts.MaxEntries)
	}
	var k Pack
	err := p.object(func(name string) (err error) {
		switch name {
		case "id":
			k.ID, err = p.str()
		case "size":
			k.Size, err = p.integer()
		case "sha256":
			err = p.hexString(k.SHA256[:])
		case "enc":
			k.Enc, err = p.str()
		default:
			err = p.unknown(name, &k.extra)
		}
		return at(name, err)
	})
	p.out.Packs = append(p.out.Packs, k)
	return at(strconv.Itoa(len(p.out.Packs)-1), err)
}

// unknown keeps a member of a later version.
func (p *stateParser) unknown(name string, to *[]field) error {
	start := p.pos
	if err := p.skip(0); err != nil {
		return err
	}
	var b bytes.Buffer
	if err := json.Compact(&b, p.data[start:p.pos]); err != nil {
		return err
	}
	*to = append(*to, field{name, b.String()})
	return nil
}

// skip passes over any value. What it lets through, encoding/json checks.
func (p *stateParser) skip(depth int) error {
	if depth > maxJSONDepth {
		return p.errorf("deeper than %d levels", maxJSONDepth)
	}
	switch p.peek() {
	case '{':
		return p.object(func(string) error { return p.skip(depth + 1) })
	case '[':
		return p.array(func() error { return p.skip(depth + 1) })
	case '"':
		_, err := p.str()
		return err
	}
	start := p.pos
	for p.pos < len(p.data) && !strings.ContainsRune(",]} \t\r\n", rune(p.data[p.pos])) {
		p.pos++
	}
	if !json.Valid(p.data[start:p.pos]) {
		return p.errorf("not a value")
	}
	return nil
}
