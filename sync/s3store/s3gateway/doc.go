// Package s3gateway runs an S3 server on a local folder, so that slipway works where there is
// no S3. The server is versitygw, in a child process that is this very program again:
//
//	program ── Start ──► program (marked by its environment) ── Main ──► versitygw on Dir
//	   │  credentials and settings ──► stdin                       │
//	   │  address ◄────────────────────── descriptor 3             │
//	   └─ ends, however it ends: stdin EOF ──────────────────────► ends
//
// It needs a process of its own since it changes the working directory and then opens everything by relative
// paths: in a program that changes it again, objects end up elsewhere.
//
// A main, or a TestMain, of a program that calls Start must call Main first thing. Linux and
// macOS; elsewhere Start says that it can't.
package s3gateway
