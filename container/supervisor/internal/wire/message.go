package wire

import (
	"fmt"
	"time"
)

// WipeArg makes the program empty the folder that is the next argument, instead of running a box.
const WipeArg = "wipe"

// Kind says what a stream is for: the first byte of Open.
type Kind byte

// The kinds of stream.
const (
	KindExec Kind = iota + 1
	KindStat
	KindRead
	KindWrite
	KindList
	KindMkdir
	KindDelete
	KindWalk
	KindHash
	KindReadAll
	KindWriteAll
)

// Settings is what the box is told in Hello.
type Settings struct {
	Workdir, Home, Root string
	UID, GID            int
	Env                 []string // KEY=value
	Scratch             []string
	DeadMan, Lifetime   time.Duration
}

// Encode returns the payload of Hello.
func (s Settings) Encode() []byte {
	var e Enc
	e.Str(protocolName)
	e.Uint(protocolVersion)
	e.Str(s.Workdir)
	e.Str(s.Home)
	e.Str(s.Root)
	e.Int(int64(s.UID))
	e.Int(int64(s.GID))
	e.Strs(s.Env)
	e.Strs(s.Scratch)
	e.Int(int64(s.DeadMan))
	e.Int(int64(s.Lifetime))
	return e.B
}

// DecodeSettings reads the payload of Hello.
func DecodeSettings(b []byte) (Settings, error) {
	d := NewDec(b)
	if err := checkVersion(d); err != nil {
		return Settings{}, err
	}
	s := Settings{
		Workdir: d.Str(), Home: d.Str(), Root: d.Str(),
		UID: int(d.Int()), GID: int(d.Int()),
		Env: d.Strs(), Scratch: d.Strs(),
		DeadMan: time.Duration(d.Int()), Lifetime: time.Duration(d.Int()),
	}
	if err := d.Err(); err != nil {
		return Settings{}, err
	}
	if s.DeadMan <= 0 || s.Lifetime <= 0 || s.UID < 0 || s.GID < 0 {
		return Settings{}, fmt.Errorf("%w: settings out of range", ErrProtocol)
	}
	return s, nil
}

func checkVersion(d *Dec) error {
	magic, version := d.Str(), d.Uint()
	if magic != protocolName {
		return fmt.Errorf("%w: peer is no slipway supervisor", ErrProtocol)
	}
	if version != protocolVersion {
		return fmt.Errorf("%w: peer speaks version %d of the protocol, this side %d", ErrProtocol, version, protocolVersion)
	}
	return nil
}

// Report is what the box answers in Ready. Error is set if it can't be used.
type Report struct {
	PID   int
	Error string
}

// Encode returns the payload of Ready.
func (r Report) Encode() []byte {
	var e Enc
	e.Str(protocolName)
	e.Uint(protocolVersion)
	e.Int(int64(r.PID))
	e.Str(r.Error)
	return e.B
}

// DecodeReport reads the payload of Ready.
func DecodeReport(b []byte) (Report, error) {
	d := NewDec(b)
	if err := checkVersion(d); err != nil {
		return Report{}, err
	}
	r := Report{PID: int(d.Int()), Error: d.Str()}
	return r, d.Err()
}

// Command is one process tree to run: the parameters of KindExec, and what the box hands to its step process.
type Command struct {
	Args           []string
	Dir            string
	Env            []string // KEY=value
	UID, GID       int      // -1: the box's
	Timeout, Grace time.Duration
	Stdin          bool // data frames follow; else the command reads nothing
}

// Encode returns the parameters.
func (c Command) Encode() []byte {
	var e Enc
	e.Strs(c.Args)
	e.Str(c.Dir)
	e.Strs(c.Env)
	e.Int(int64(c.UID))
	e.Int(int64(c.GID))
	e.Int(int64(c.Timeout))
	e.Int(int64(c.Grace))
	e.Bool(c.Stdin)
	return e.B
}

// DecodeCommand reads what Command.Encode wrote.
func DecodeCommand(b []byte) (Command, error) {
	d := NewDec(b)
	c := Command{
		Args: d.Strs(), Dir: d.Str(), Env: d.Strs(),
		UID: int(d.Int()), GID: int(d.Int()),
		Timeout: time.Duration(d.Int()), Grace: time.Duration(d.Int()), Stdin: d.Bool(),
	}
	if err := d.Err(); err != nil {
		return Command{}, err
	}
	if len(c.Args) == 0 || c.Timeout < 0 || c.Grace < 0 {
		return Command{}, fmt.Errorf("%w: command out of range", ErrProtocol)
	}
	return c, nil
}

// Exit is the result of KindExec. Lost is set if the box can't tell how the command ended.
type Exit struct {
	Lost          string
	Code, Signal  int
	Error         string
	TimedOut      bool
	Canceled      bool
	OOM           bool
	CPU, Duration time.Duration
	MaxRSS        int64
	Leftovers     int
	Output        int64
	Cut           bool // the leftovers were ended while more output could come
	Pids          bool // a fork was refused: the box was at its limit of processes
	Unwatched     bool // the command ended its own step process
}

// Encode returns the payload of End.
func (x Exit) Encode() []byte {
	var e Enc
	e.Str(x.Lost)
	e.Int(int64(x.Code))
	e.Int(int64(x.Signal))
	e.Str(x.Error)
	e.Bool(x.TimedOut)
	e.Bool(x.Canceled)
	e.Bool(x.OOM)
	e.Int(int64(x.CPU))
	e.Int(int64(x.Duration))
	e.Int(x.MaxRSS)
	e.Int(int64(x.Leftovers))
	e.Int(x.Output)
	e.Bool(x.Cut)
	e.Bool(x.Pids)
	e.Bool(x.Unwatched)
	return e.B
}

// DecodeExit reads what Exit.Encode wrote.
func DecodeExit(b []byte) (Exit, error) {
	d := NewDec(b)
	x := Exit{
		Lost: d.Str(), Code: int(d.Int()), Signal: int(d.Int()), Error: d.Str(),
		TimedOut: d.Bool(), Canceled: d.Bool(), OOM: d.Bool(),
		CPU: time.Duration(d.Int()), Duration: time.Duration(d.Int()), MaxRSS: d.Int(),
		Leftovers: int(d.Int()), Output: d.Int(), Cut: d.Bool(),
		Pids: d.Bool(), Unwatched: d.Bool(),
	}
	return x, d.Err()
}
