// Package wsync keeps a workspace in an object store. It lies in the folder sync: a package of that name would clash with
// the standard library's. A push moves only what changed, and takes effect as a whole or not at all.
//
//	          Pull: store → workspace                 Push: workspace → store
//	head ─► state (validated whole) ─► Tree     Tree ─► scan ─► diff ─► packs, blobs ─► version ─► head
//	                                                                    (immutable)     (create)  (compare-and-set)
//
// # Glossary
//
//   - Tree: the files of a workspace, in a local folder or inside a box.
//   - State: the list of the files, with checksums and the place of each file's bytes in the store.
//   - Head: the object .sandbox-state, which holds the newest state. No other object is ever replaced.
//   - Version: an immutable copy of each state that was, or was about to become, the head.
//   - Entry: one file, folder or link of a state.
//   - Scan: what a walk of the tree found. Base: the state that was pulled, with the stats of its files.
//   - Commit: the ULID of a state. The state also lists the commits of its ancestors, its parents.
//   - Pack: a plain tar of small files. Blob: one large file. Both are immutable.
//   - Fence: the number of the writer's claim. A push with a smaller fence than the head's is refused.
//   - Conflict: the head is not the base any more. Nothing is merged.
//
// # Where to read
//
//	contracts     tree.go, store.go, syncer.go
//	pull          base.go ─► pull.go ─► pull_fetch.go
//	push          push.go ─► scan.go, diff.go ─► upload.go ─► pack.go, pack_tar.go ─► commit.go; revert.go
//	the state     state.go, state_check.go, state_parse.go, state_entry.go, state_encode.go, ulid.go
//
// Trees: sync/folder, and the box's files in runner/internal/workspace. Stores: sync/s3store, sync/filestore on
// a local folder, and one in memory in sync/wsynctest. That package also holds the suites that every Tree and every Store must pass.
package wsync
