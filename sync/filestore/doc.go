// Package filestore is the wsync.Store on a local folder, for one process at a time. worker run keeps workspaces in it,
// and so does a program with one worker and no S3 service. It imports the standard library, wsync and internal/flock only.
//
//	dir/
//	  @lock                     held by the process that has the store open
//	  @put-<random>             an object that is being written
//	  acme/parser/packs/7f3a…@  the object acme/parser/packs/7f3a…
//
// # Glossary
//
//   - Key and path: a component of a key is a folder, the last one a file whose name ends in @. So both a and a/b are
//     allowed. Lower-case letters, digits and ._- stand for themselves in a name, and %xx for every other byte: a key leads
//     neither out of the folder nor to another key's object on a file system that ignores case. See names.go.
//   - Trailer: what a file has after the object's content: ETag, metadata and size. A file whose trailer does not fit is
//     reported as wsync.ErrCorrupt, not returned.
//   - Put: the object is written under a name of no key and renamed. Readers have the old object or the new one. An open
//     object stays what it was.
//   - Condition: one mutex is held from the look at the object to the rename. That is why a second process is refused.
//
// What was confirmed is there after the process was killed. After a power cut an object may be missing, or reported as
// corrupt: objects are not flushed to the disk one by one.
//
// Linux and macOS. The package compiles elsewhere, without the lock.
package filestore
