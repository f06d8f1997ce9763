package wire

import (
	"bufio"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
)

// Code is the kind of an error of a file operation.
type Code byte

// The codes. The client turns each into an error of package container.
const (
	CodeOK Code = iota
	CodeNotFound
	CodeExists
	CodeNotRegular
	CodeTooLarge
	CodePath
	CodePermission
	CodeNoSpace
	CodeUnsupported
	CodeCanceled
	CodeOther
)

// Status is how a file operation went: the beginning of its End, and of many records.
type Status struct {
	Code    Code
	Path    string // what it is about; empty: nothing in particular
	Message string // of an error, without the path
}

// Put appends s to e.
func (s Status) Put(e *Enc) {
	e.Uint(uint64(s.Code))
	e.Str(s.Path)
	e.Str(s.Message)
}

// GetStatus reads what Put wrote.
func GetStatus(d *Dec) Status { return Status{Code: Code(d.Uint()), Path: d.Str(), Message: d.Str()} }

// Info describes an entry; see container.FileInfo.
type Info struct {
	Path                string
	Type                byte
	Mode                uint32
	Size                int64
	ModTime, ChangeTime int64
	Inode               uint64
	Target              string
}

// Put appends i to e.
func (i Info) Put(e *Enc) {
	e.Str(i.Path)
	e.Uint(uint64(i.Type))
	e.Uint(uint64(i.Mode))
	e.Int(i.Size)
	e.Int(i.ModTime)
	e.Int(i.ChangeTime)
	e.Uint(i.Inode)
	e.Str(i.Target)
}

// GetInfo reads what Put wrote.
func GetInfo(d *Dec) Info {
	return Info{
		Path: d.Str(), Type: byte(d.Uint()), Mode: uint32(d.Uint()), Size: d.Int(),
		ModTime: d.Int(), ChangeTime: d.Int(), Inode: d.Uint(), Target: d.Str(),
	}
}

// Entry begins one entry of KindWriteAll; Size bytes of content follow.
type Entry struct {
	Path    string
	Type    byte
	Mode    uint32
	Size    int64
	ModTime int64
	HasTime bool
	Target  string
}

// Put appends n to e.
func (n Entry) Put(e *Enc) {
	e.Str(n.Path)
	e.Uint(uint64(n.Type))
	e.Uint(uint64(n.Mode))
	e.Int(n.Size)
	e.Int(n.ModTime)
	e.Bool(n.HasTime)
	e.Str(n.Target)
}

// GetEntry reads what Put wrote.
func GetEntry(d *Dec) Entry {
	return Entry{
		Path: d.Str(), Type: byte(d.Uint()), Mode: uint32(d.Uint()), Size: d.Int(),
		ModTime: d.Int(), HasTime: d.Bool(), Target: d.Str(),
	}
}

// MaxRecord bounds a record in the bytes of a stream.
const MaxRecord = 64 << 10

// WriteRecord writes the message in e, with its length.
func WriteRecord(w *bufio.Writer, e *Enc) error {
	var n [binary.MaxVarintLen64]byte
	if len(e.B) > MaxRecord {
		return fmt.Errorf("record of %d bytes: at most %d", len(e.B), MaxRecord)
	}
	if _, err := w.Write(n[:binary.PutUvarint(n[:], uint64(len(e.B)))]); err != nil {
		return err
	}
	_, err := w.Write(e.B)
	return err
}

// ReadRecord reads what WriteRecord wrote. It returns io.EOF at the end of the stream, and ErrProtocol for
// a record that is too large. The message is valid until the next read from r.
func ReadRecord(r *bufio.Reader, buf *[]byte) (*Dec, error) {
	n, err := binary.ReadUvarint(r)
	if err != nil {
		return nil, err
	}
	if n > MaxRecord {
		return nil, fmt.Errorf("%w: record of %d bytes", ErrProtocol, n)
	}
	if uint64(cap(*buf)) < n {
		*buf = make([]byte, n)
	}
	b := (*buf)[:n]
	if _, err := io.ReadFull(r, b); err != nil {
		if errors.Is(err, io.EOF) {
			err = io.ErrUnexpectedEOF
		}
		return nil, err
	}
	return NewDec(b), nil
}
