// Package devprotocol is what package devserver and the programs of the development servers say to each other. The servers
// are programs of their own, so that they are part of no other build, and a build of one is not one of the other.
//
//	devserver ── Settings, one line of JSON ──► stdin        ── its end ends the program
//	          ◄── Report, one line of JSON ──── descriptor 3
package devprotocol

import "time"

// Version is raised by each change after which an older peer would go wrong.
const Version = 2

// The programs' files, on Windows with .exe behind them.
const (
	NATSProgram = "slipway-devserver-nats"
	S3Program   = "slipway-devserver-s3"
)

// ChildArg is the programs' only argument. Without it they tell a person what they are.
const ChildArg = "--child"

// ReportFD is the descriptor that a program reports on.
const ReportFD = 3

// CloseTime bounds a program's orderly end. After it the caller kills the program.
const CloseTime = 5 * time.Second

// Settings says how the program's server is run. They travel on stdin since other users can read a process's arguments.
type Settings struct {
	Version int
	// Dir holds the data. It is absolute.
	Dir string
	// Addr is the host:port to listen on. Port 0 is a free one.
	Addr string
	// User and Password are the only account; of the S3 gateway, its access key and secret key. Without a User, everybody
	// may connect to the NATS server. The gateway has to have one.
	User, Password string
}

// Report is what became of the start: either Error, or the address, host:port, of the server.
type Report struct {
	Addr  string `json:",omitempty"`
	Error string `json:",omitempty"`
}
