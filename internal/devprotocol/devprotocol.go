// Package devprotocol is what package devserver and the program slipway-devserver say to each other. The
// program is another module, so that its servers are part of no other build.
//
//	devserver ── Settings, one line of JSON ──► stdin        ── its end ends the program
//	          ◄── Report, one line of JSON ──── descriptor 3
package devprotocol

import "time"

// Version is raised by each change after which an older peer would go wrong.
const Version = 1

// Program is the name of the program's file, on Windows with .exe behind it.
const Program = "slipway-devserver"

// ReportFD is the descriptor that the program reports on.
const ReportFD = 3

// CloseTime bounds the program's orderly end. After it the caller kills the program.
const CloseTime = 5 * time.Second

// Settings says which servers to run. They travel on stdin since other users can read a process's arguments.
type Settings struct {
	Version int
	NATS    *NATS `json:",omitempty"`
	S3      *S3   `json:",omitempty"`
}

// NATS says how the NATS server is run. Its Dir is absolute. With a User, nobody else may connect.
type NATS struct{ Dir, Addr, User, Password string }

// S3 says how the S3 gateway is run. Its Dir is absolute, and its keys are those of the only account.
type S3 struct{ Dir, Addr, AccessKey, SecretKey string }

// Report is what became of the start: either Error, or the addresses, host:port, of the servers that were asked for.
type Report struct {
	NATS  string `json:",omitempty"`
	S3    string `json:",omitempty"`
	Error string `json:",omitempty"`
}
