package wire

import (
	"encoding/binary"
	"errors"
	"fmt"
	"io"
)

// protocolVersion is the version of the protocol. Both ends are built together, so they must be equal.
const protocolVersion = 3

// protocolName begins the first frame of each side.
const protocolName = "slipway-box"

// Limits of a frame.
const (
	headerSize = 9
	// MaxPayload bounds any frame.
	MaxPayload = 1 << 20
	// MaxData bounds a data frame.
	MaxData = 64 << 10
	// Window is how many units may be under way in a stream, in one direction.
	Window = 256 << 10
	// frameCost is what a data frame costs beyond its bytes.
	frameCost = 64
)

// Type says what a frame is.
type Type byte

// The types of frame.
const (
	Hello Type = iota + 1
	Ready
	Ping
	Pong
	Open
	Data
	Stdout
	Stderr
	EOF
	WindowUpdate
	Cancel
	End
	Stop
	Bye
	typeCount
)

// Frame is one message. Its payload has the memory that ReadFrame's alloc gave; it is valid until that is freed.
type Frame struct {
	Type    Type
	ID      uint32
	Payload []byte
}

// ErrProtocol is matched by the error of each frame that a correct peer never sends.
var ErrProtocol = errors.New("protocol broken")

// limit is the largest payload of a frame of type t, or -1 for a type that does not exist.
func (t Type) limit() int {
	switch t {
	case Data, Stdout, Stderr:
		return MaxData
	case Ping, Pong, EOF, Cancel:
		return 0
	case WindowUpdate:
		return 4
	case Stop:
		return 8
	case Hello, Ready, Open, End, Bye:
		return MaxPayload
	default:
		return -1
	}
}

// AppendFrame appends the encoded frame to b.
func AppendFrame(b []byte, t Type, id uint32, payload []byte) []byte {
	b = append(b, byte(t))
	b = binary.BigEndian.AppendUint32(b, id)
	b = binary.BigEndian.AppendUint32(b, uint32(len(payload)))
	return append(b, payload...)
}

// ReadFrame reads one frame; alloc gives the memory for its payload. It returns io.EOF
// if the stream ends between frames, io.ErrUnexpectedEOF within one, and ErrProtocol for
// bytes that are no frame. It never asks alloc for more than MaxPayload.
func ReadFrame(r io.Reader, alloc func(n int) []byte) (Frame, error) {
	var h [headerSize]byte
	if _, err := io.ReadFull(r, h[:]); err != nil {
		return Frame{}, err
	}
	f := Frame{Type: Type(h[0]), ID: binary.BigEndian.Uint32(h[1:5])}
	n := binary.BigEndian.Uint32(h[5:9])
	if limit := f.Type.limit(); limit < 0 || n > uint32(limit) {
		return Frame{}, fmt.Errorf("%w: frame of type %d with %d bytes", ErrProtocol, f.Type, n)
	}
	if n == 0 {
		return f, nil
	}
	f.Payload = alloc(int(n))
	if _, err := io.ReadFull(r, f.Payload); err != nil {
		if errors.Is(err, io.EOF) {
			err = io.ErrUnexpectedEOF
		}
		return Frame{}, err
	}
	return f, nil
}
