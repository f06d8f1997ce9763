package job

import (
	"fmt"
	"strconv"
	"strings"
	"unicode/utf16"
	"unicode/utf8"
)

// str reads a string. Most have no escapes and are cut out of the text.
func (p *jsonParser) str(into *string) *FieldError {
	p.pos++
	start := p.pos
	for p.pos < len(p.text) {
		switch c := p.text[p.pos]; {
		case c == '"':
			*into = p.text[start:p.pos]
			p.pos++
			return nil
		case c == '\\':
			return p.escaped(start, into)
		case c < 0x20:
			return p.errorf(fmt.Sprintf("the control character 0x%02x must be escaped in a string", c))
		}
		p.pos++
	}
	return p.errorf("the text ends within a string")
}

// escaped reads the rest of a string from its first escape on.
func (p *jsonParser) escaped(start int, into *string) *FieldError {
	var b strings.Builder
	b.WriteString(p.text[start:p.pos])
	for p.pos < len(p.text) {
		switch c := p.text[p.pos]; {
		case c == '"':
			*into = b.String()
			p.pos++
			return nil
		case c == '\\':
			if err := p.escape(&b); err != nil {
				return err
			}
		case c < 0x20:
			return p.errorf(fmt.Sprintf("the control character 0x%02x must be escaped in a string", c))
		default:
			b.WriteByte(c)
			p.pos++
		}
	}
	return p.errorf("the text ends within a string")
}

func (p *jsonParser) escape(b *strings.Builder) *FieldError {
	const names, means = `"\/bfnrt`, "\"\\/\b\f\n\r\t"
	rest := p.text[p.pos+1:]
	if rest == "" {
		return p.errorf("the text ends within a string")
	}
	if i := strings.IndexByte(names, rest[0]); i >= 0 {
		b.WriteByte(means[i])
		p.pos += 2
		return nil
	}
	r, ok := hex4(p.text[p.pos:])
	size := 6
	if ok && utf16.IsSurrogate(r) {
		low, _ := hex4(p.text[p.pos+size:])
		r, size = utf16.DecodeRune(r, low), 2*size
		ok = r != utf8.RuneError
	}
	if !ok {
		return p.errorf(`not an escape that JSON knows: write \\ for a backslash, \u and four hex digits for a character`)
	}
	b.WriteRune(r)
	p.pos += size
	return nil
}

// hex4 reads an escape of the form \uXXXX.
func hex4(s string) (rune, bool) {
	if len(s) < 6 || s[:2] != `\u` || strings.Trim(s[2:6], "0123456789abcdefABCDEF") != "" {
		return 0, false
	}
	v, err := strconv.ParseUint(s[2:6], 16, 32)
	return rune(v), err == nil
}
