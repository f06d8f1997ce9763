// Package devserver runs a NATS server and an S3 gateway on local folders, so that slipway works where
// neither is installed. They are for development and tests: one machine, no replicas.
//
// Each server is a program of its own, which this package starts as a child process if it is asked for:
//
//	caller ── Start ─┬─► slipway-devserver-nats ── nats-server on NATS.Dir
//	   │             └─► slipway-devserver-s3   ── versitygw   on S3.Dir
//	   │  settings ──► stdin of each
//	   │  address  ◄── report of each
//	   └─ ends, however it ends: stdin is at its end ──► the programs end
//
// So a production worker contains no server: they are a third of the code of a program that links them, and nearly
// half of its modules. They are two programs since a caller who needs the queue alone, as worker run does, need not wait
// until the gateway is compiled. The gateway needs a process of its own anyway. It changes the working directory and
// opens every file by a relative path; in a process that changes the directory again, objects end up elsewhere.
//
// # Why versitygw
//
// slipway needs a store that keeps the conditions If-Match and If-None-Match against concurrent writers, takes
// multipart uploads, checks signatures, and has lost nothing that it confirmed when it is killed. versitygw
// does all of it on plain files. docs/design.md has the alternatives that were measured.
//
// # Words
//
//	Servers   the running child processes, with the addresses and accounts of their servers
//	NATS, S3  the options of one server; nil leaves that server out
//	Programs  the folder of the servers' programs
//
// Linux and macOS; elsewhere Start returns an error.
package devserver
