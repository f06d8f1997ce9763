package wsync

import (
	"bytes"
	"encoding/json"
	"fmt"
	"math"
	"sort"
	"strconv"
	"strings"
	"time"

	"slipway/internal/document"
)

// parseState reads a state file of version 1.x and checks every rule of it, within
// the limits of opts. A state comes from outside and is not trusted: one entry that
// breaks a rule refuses all of it. The error is an ErrState, or an ErrUnsupported for
// another version, and names the entry.
func parseState(data []byte, opts Options) (*state, error) {
	opts = opts.withDefaults()
	kind := stateKind
	kind.MaxBytes = int(min(opts.MaxStateBytes, math.MaxInt))
	r, err := document.NewReader(data, &kind)
	if err != nil {
		return nil, fmt.Errorf("%w: %w", ErrState, err)
	}
	p := &stateParser{Reader: r, opts: opts}
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

// stateKind is what the reader of states adds to that of all documents. Within the deepest map that may hold fields of
// a later version, an entry of files, these can be nested in 33 levels.
var stateKind = document.Kind{Name: "state", MaxDepth: 3 + 33}

// stateParser fills a State while it reads: a large one would take ten times the memory as a tree of nodes.
type stateParser struct {
	*document.Reader
	opts Options
	out  state
}

func (p *stateParser) state() error {
	if err := p.Object(p.stateMember); err != nil {
		return err
	}
	return p.End()
}

func (p *stateParser) stateMember(name string) (err error) {
	s := &p.out
	switch name {
	case "version":
		s.Version, err = p.String()
	case "last_synced_at":
		s.LastSyncedAt, err = p.Int()
	case "workspace":
		s.Workspace, err = p.String()
	case "commit":
		s.Commit, err = p.String()
	case "parent":
		s.Parent, err = p.String()
	case "parents":
		err = p.Array(p.parent)
	case "generation":
		s.Generation, err = p.Int()
	case "writer":
		err = p.writer()
	case "created_at":
		err = p.createdAt()
	case "layout":
		s.Layout, err = p.String()
	case "totals":
		err = p.totals()
	case "ignore_sha256":
		s.IgnoreSHA256, err = p.String()
	case "packs":
		err = p.Array(p.pack)
	case "files":
		err = p.Array(p.entry)
	default:
		err = p.unknown(name, &s.extra)
	}
	return err
}

func (p *stateParser) parent() error {
	c, err := p.String()
	p.out.Parents = append(p.out.Parents, c)
	if len(p.out.Parents) > maxParents {
		return fmt.Errorf("more than %d parents", maxParents)
	}
	return err
}

func (p *stateParser) writer() error {
	w := &p.out.Writer
	return p.Object(func(name string) (err error) {
		switch name {
		case "worker":
			w.Worker, err = p.String()
		case "job":
			w.Job, err = p.String()
		case "attempt":
			var n int64
			n, err = p.Int()
			w.Attempt = int(n)
		case "fence":
			w.Fence, err = p.fence()
		default:
			_, err = p.Raw()
		}
		return err
	})
}

// fence reads a number that may be larger than an int64.
func (p *stateParser) fence() (uint64, error) {
	text, err := p.Raw()
	if err != nil {
		return 0, err
	}
	n, err := strconv.ParseUint(string(text), 10, 64)
	if err != nil {
		return 0, fmt.Errorf("want a whole number of 0 or more, not %s", document.Quote(string(text)))
	}
	return n, nil
}

func (p *stateParser) createdAt() error {
	v, err := p.String()
	if err == nil && v != "" {
		p.out.CreatedAt, err = time.Parse(time.RFC3339Nano, v)
	}
	return err
}

func (p *stateParser) totals() error {
	return p.Object(func(name string) (err error) {
		switch name {
		case "files":
			p.out.Totals.Files, err = p.Int()
		case "bytes":
			p.out.Totals.Bytes, err = p.Int()
		default:
			_, err = p.Raw()
		}
		return err
	})
}

func (p *stateParser) pack() error {
	if len(p.out.Packs) >= p.opts.MaxEntries {
		return fmt.Errorf("more than %d packs", p.opts.MaxEntries)
	}
	var k pack
	err := p.Object(func(name string) (err error) {
		switch name {
		case "id":
			k.ID, err = p.String()
		case "size":
			k.Size, err = p.Int()
		case "sha256":
			err = p.hexString(k.SHA256[:])
		case "enc":
			k.Enc, err = p.String()
		default:
			err = p.unknown(name, &k.extra)
		}
		return err
	})
	p.out.Packs = append(p.out.Packs, k)
	return err
}

// unknown keeps a member of a later version.
func (p *stateParser) unknown(name string, to *[]field) error {
	text, err := p.Raw()
	if err != nil {
		return err
	}
	var b bytes.Buffer
	if err := json.Compact(&b, text); err != nil {
		return err
	}
	*to = append(*to, field{name, b.String()})
	return nil
}
