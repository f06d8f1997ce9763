package job

import (
	"fmt"
	"strings"
	"unicode/utf8"
)

// ParseJSON reads one JSON value into Nodes with their positions. Errors are
// *FieldError: what RFC 8259 forbids, more than MaxNesting levels, more than
// MaxSpecBytes, invalid UTF-8, a lone surrogate, and anything after the value.
// Duplicate keys are kept, for DecodeNode to refuse.
func ParseJSON(data []byte) (*Node, error) {
	if err := CheckText(data); err != nil {
		return nil, err
	}
	p := &jsonParser{text: string(data), line: 1}
	n, err := p.document()
	if err != nil {
		return nil, err
	}
	return n, nil
}

// CheckText checks what a job's text must be in any notation: at most
// MaxSpecBytes of UTF-8. Its error is a *FieldError.
func CheckText(data []byte) error {
	if len(data) > MaxSpecBytes {
		return &FieldError{Message: fmt.Sprintf("%d bytes, more than the %d (1 MiB) allowed: "+
			"put large content into the store and name it in inputs", len(data), MaxSpecBytes)}
	}
	line, start := 1, 0
	for i := 0; i < len(data); {
		r, size := utf8.DecodeRune(data[i:])
		if r == utf8.RuneError && size == 1 {
			column := utf8.RuneCount(data[start:i]) + 1
			return &FieldError{Line: line, Column: column, Message: fmt.Sprintf(
				"byte 0x%02x is not UTF-8: save the text as UTF-8, or give binary content as content_base64", data[i])}
		}
		i += size
		if r == '\n' {
			line, start = line+1, i
		}
	}
	return nil
}

// jsonParser walks over text, which is valid UTF-8.
type jsonParser struct {
	text  string
	pos   int
	depth int

	line      int // of pos
	lineStart int // offset of the line's first byte
	counted   int // offset up to which characters is valid
	column    int // characters between lineStart and counted
}

func (p *jsonParser) document() (*Node, *FieldError) {
	p.space()
	if p.pos == len(p.text) {
		return nil, p.errorf("the job is empty")
	}
	n, err := p.value()
	if err != nil {
		return nil, err
	}
	p.space()
	if p.pos < len(p.text) {
		return nil, p.errorf("data after the end of the job")
	}
	return n, nil
}

func (p *jsonParser) value() (*Node, *FieldError) {
	n := &Node{}
	n.Line, n.Column = p.place()
	switch c := p.peek(); {
	case c == '{':
		return n, p.nested(n, p.object)
	case c == '[':
		return n, p.nested(n, p.array)
	case c == '"':
		n.Kind = NodeString
		return n, p.str(&n.Text)
	case c == '-' || c >= '0' && c <= '9':
		n.Kind = NodeNumber
		return n, p.number(&n.Text)
	}
	return n, p.word(n)
}

// nested reads an object or a list one level deeper.
func (p *jsonParser) nested(n *Node, read func(*Node) *FieldError) *FieldError {
	if p.depth++; p.depth > MaxNesting {
		return p.errorf(fmt.Sprintf("nested deeper than %d levels", MaxNesting))
	}
	defer func() { p.depth-- }()
	p.pos++
	return read(n)
}

func (p *jsonParser) object(n *Node) *FieldError {
	n.Kind = NodeMap
	for first := true; ; first = false {
		if done, err := p.separator('}', first); done || err != nil {
			return err
		}
		if p.peek() != '"' {
			return p.unexpected("a key in double quotes")
		}
		var m Member
		m.Line, m.Column = p.place()
		if err := p.str(&m.Key); err != nil {
			return err
		}
		p.space()
		if p.peek() != ':' {
			return p.unexpected(fmt.Sprintf("':' after the key %s", quote(m.Key)))
		}
		p.pos++
		p.space()
		var err *FieldError
		if m.Value, err = p.value(); err != nil {
			return err
		}
		n.Members = append(n.Members, m)
	}
}

func (p *jsonParser) array(n *Node) *FieldError {
	n.Kind = NodeList
	for first := true; ; first = false {
		if done, err := p.separator(']', first); done || err != nil {
			return err
		}
		item, err := p.value()
		if err != nil {
			return err
		}
		n.Items = append(n.Items, item)
	}
}

// separator reads what stands before the next element: nothing, a comma, or the end.
func (p *jsonParser) separator(end byte, first bool) (done bool, err *FieldError) {
	p.space()
	switch c := p.peek(); {
	case c == end && p.pos < len(p.text):
		p.pos++
		return true, nil
	case first:
		return false, nil
	case c != ',':
		return false, p.unexpected(fmt.Sprintf("',' or '%c'", end))
	}
	p.pos++
	p.space()
	if p.peek() == end {
		return false, p.errorf(fmt.Sprintf("no comma is allowed before '%c'", end))
	}
	return false, nil
}

// number reads -?(0|[1-9][0-9]*)(\.[0-9]+)?([eE][+-]?[0-9]+)?
func (p *jsonParser) number(into *string) *FieldError {
	start := p.pos
	p.accept("-")
	if p.accept("0"); p.text[start:p.pos] != "0" && p.text[start:p.pos] != "-0" && !p.digits() {
		return p.unexpected("a digit")
	}
	if p.accept(".") && !p.digits() {
		return p.unexpected("a digit")
	}
	if p.accept("eE") {
		p.accept("+-")
		if !p.digits() {
			return p.unexpected("a digit")
		}
	}
	*into = p.text[start:p.pos]
	return nil
}

// accept moves over one of the given characters.
func (p *jsonParser) accept(chars string) bool {
	if p.pos < len(p.text) && strings.IndexByte(chars, p.text[p.pos]) >= 0 {
		p.pos++
		return true
	}
	return false
}

func (p *jsonParser) digits() bool {
	start := p.pos
	for p.accept("0123456789") {
	}
	return p.pos > start
}

// word reads true, false or null.
func (p *jsonParser) word(n *Node) *FieldError {
	for word, kind := range map[string]NodeKind{"true": NodeBool, "false": NodeBool, "null": NodeNull} {
		if strings.HasPrefix(p.text[p.pos:], word) {
			n.Kind, n.Text = kind, word
			p.pos += len(word)
			return nil
		}
	}
	return p.unexpected("a value: a string in double quotes, a number, true, false, null, '[' or '{'")
}

func (p *jsonParser) space() {
	for p.pos < len(p.text) {
		switch p.text[p.pos] {
		case '\n':
			p.pos++
			p.line, p.lineStart = p.line+1, p.pos
			p.counted, p.column = p.pos, 0
		case ' ', '\t', '\r':
			p.pos++
		default:
			return
		}
	}
}

// peek returns the next byte, or 0 at the end.
func (p *jsonParser) peek() byte {
	if p.pos < len(p.text) {
		return p.text[p.pos]
	}
	return 0
}

// place returns line and column of the next character. A job on the wire is one
// long line, so the characters counted once are not counted again.
func (p *jsonParser) place() (line, column int) {
	p.column += utf8.RuneCountInString(p.text[p.counted:p.pos])
	p.counted = p.pos
	return p.line, p.column + 1
}

func (p *jsonParser) unexpected(want string) *FieldError {
	if p.pos == len(p.text) {
		return p.errorf("the text ends where " + want + " is wanted")
	}
	r, _ := utf8.DecodeRuneInString(p.text[p.pos:])
	return p.errorf(fmt.Sprintf("%q where %s is wanted", r, want))
}

func (p *jsonParser) errorf(message string) *FieldError {
	line, column := p.place()
	return &FieldError{Line: line, Column: column, Message: message}
}
