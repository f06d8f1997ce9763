// Package wsync (in the folder sync, since a package of that name would force an
// alias on everyone who also needs the standard library's) keeps a workspace in
// an object store. It moves only what changed, and never half of it. It imports
// the standard library only.
//
//	          Pull: store → workspace                 Push: workspace → store
//	head ─► State (validated whole) ─► Tree     Tree ─► scan ─► Diff ─► packs, blobs ─► version ─► head
//	                                                                    (immutable)     (create)  (compare-and-set)
//
// # Glossary
//
//   - Tree: the files, wherever they are: a folder here, or the inside of a box.
//   - State: the list of them, with checksums, and where each one's bytes are stored. Its
//     stored form is .sandbox-state, the head, the only object that is ever replaced.
//   - Entry: one file, folder or link of a State.
//   - Base: the State that was pulled. Local: the one scanned. Remote: the head now.
//   - Commit: the ULID of a State. Its parents' follow it in the State.
//   - Pack: a plain tar of small files. Blob: one large file. Both are immutable.
//   - Fence: the number of the writer's claim; a push with a smaller one than the head's is refused.
//   - Conflict: the head is not the base any more. Nothing is merged.
//
// Implementations of Store: sync/s3store, and the twin in sync/wsynctest, which
// also holds the suite that every store must pass.
package wsync
