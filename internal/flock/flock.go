// Package flock keeps processes of one machine apart by a lock on an open file. The kernel gives the lock back when the file
// is closed, also by the end of the process, however that comes.
//
// Where the system has no such lock, both functions succeed and lock nothing. slipway promises what rests on them for Linux
// and macOS only.
package flock

import "errors"

// ErrLocked says that another open file holds the lock, of this process or of another one.
var ErrLocked = errors.New("locked by another")
