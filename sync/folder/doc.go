// Package folder is the wsync.Tree of a local folder. It imports the standard library and wsync only.
//
//	New ─► tree ─┬─ Walk, Hash, ReadAll ─► cursor ─► openDir ─► files (fsat_*.go) ─► handle
//	             └─ WriteAll ─┬─ folders, links, streams: one cursor, in order
//	                          └─ files in memory: writers ─► batches ─► several cursors
//
// # Glossary
//
//   - cursor: the open folders that lead to the path used last. Paths come sorted, so most of them stay open.
//   - openFolder: one open folder, as an os.Root for what is rare and as a descriptor for what is not.
//   - files, handle: the files of one open folder and one open file, by system calls relative to the folder. There are
//     two versions: fsat_linux.go with half the system calls, and fsat_portable.go on package os.
//   - writers, batch: files whose content is in memory are made by several goroutines, a batch of neighbors at a time.
//
// # What holds against another process in the same folder
//
// Every step is relative to an open folder, goes one component down, and follows no link. A folder or a file that was
// swapped for a link between the look and the opening is noticed by its identity (openDir, fsat_portable.go) or refused by
// the system (O_NOFOLLOW). A named pipe is opened without waiting for its other end.
package folder
