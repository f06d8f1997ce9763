//go:build linux

// Package workspace reads, writes and removes the files of a box: what the worker asks for over the
// protocol (Server), and the wipe at the end of the box (Empty, Remove).
//
//	Server.Answer ── slots, the commands' user ──► operation ──► tree: one open folder
//	                                                 ├── ops       stat, read, write, make a folder, delete
//	                                                 ├── walk      list a folder, walk the workspace
//	                                                 ├── bulk      hash and read many files
//	                                                 └── writeall  make many entries
//
// Processes in the box change the same files meanwhile, and try to lead the supervisor out of the
// workspace. So every path is looked up below the open folder without following a link, every file is opened
// without waiting, and no operation holds an amount of memory that a command could choose.
package workspace
