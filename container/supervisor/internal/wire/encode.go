package wire

import (
	"encoding/binary"
	"fmt"
)

// Enc builds a message, field by field. The zero value is empty.
type Enc struct{ B []byte }

// Uint appends v.
func (e *Enc) Uint(v uint64) { e.B = binary.AppendUvarint(e.B, v) }

// Int appends v, which may be negative.
func (e *Enc) Int(v int64) { e.B = binary.AppendVarint(e.B, v) }

// Bool appends v.
func (e *Enc) Bool(v bool) {
	if v {
		e.B = append(e.B, 1)
	} else {
		e.B = append(e.B, 0)
	}
}

// Str appends s with its length.
func (e *Enc) Str(s string) {
	e.Uint(uint64(len(s)))
	e.B = append(e.B, s...)
}

// Strs appends a list.
func (e *Enc) Strs(list []string) {
	e.Uint(uint64(len(list)))
	for _, s := range list {
		e.Str(s)
	}
}

// Raw appends b as it is.
func (e *Enc) Raw(b []byte) { e.B = append(e.B, b...) }

// Dec takes a message apart. After the first field that does not fit, all are zero and Err says so.
type Dec struct {
	b   []byte
	bad bool
}

// NewDec reads b, which must not change meanwhile.
func NewDec(b []byte) *Dec { return &Dec{b: b} }

// Uint reads what Enc.Uint wrote.
func (d *Dec) Uint() uint64 {
	v, n := binary.Uvarint(d.b)
	if d.bad || n <= 0 {
		d.fail()
		return 0
	}
	d.b = d.b[n:]
	return v
}

// Int reads what Enc.Int wrote.
func (d *Dec) Int() int64 {
	v, n := binary.Varint(d.b)
	if d.bad || n <= 0 {
		d.fail()
		return 0
	}
	d.b = d.b[n:]
	return v
}

// Bool reads what Enc.Bool wrote.
func (d *Dec) Bool() bool {
	b := d.Raw(1)
	if len(b) == 0 || b[0] > 1 {
		d.fail()
		return false
	}
	return b[0] == 1
}

// Str reads what Enc.Str wrote.
func (d *Dec) Str() string {
	n := d.Uint()
	if n > uint64(len(d.b)) {
		d.fail()
		return ""
	}
	return string(d.Raw(int(n)))
}

// Strs reads what Enc.Strs wrote.
func (d *Dec) Strs() []string {
	n := d.Uint()
	if n > uint64(len(d.b)) { // every string takes a byte at least
		d.fail()
		return nil
	}
	if n == 0 {
		return nil
	}
	list := make([]string, 0, min(n, 1024))
	for range n {
		list = append(list, d.Str())
		if d.bad {
			return nil
		}
	}
	return list
}

// Raw reads n bytes. The result is a part of the message.
func (d *Dec) Raw(n int) []byte {
	if d.bad || n < 0 || n > len(d.b) {
		d.fail()
		return nil
	}
	b := d.b[:n]
	d.b = d.b[n:]
	return b
}

// Rest reads what is left.
func (d *Dec) Rest() []byte { return d.Raw(len(d.b)) }

// Err is nil if every field fitted and nothing is left over.
func (d *Dec) Err() error {
	if d.bad || len(d.b) > 0 {
		return fmt.Errorf("%w: malformed message", ErrProtocol)
	}
	return nil
}

func (d *Dec) fail() { d.bad, d.b = true, nil }
