// Package workspace moves the files of a job between the store and its box: it restores the stored workspace and puts
// the inputs into it before the steps, and saves what changed after them.
//
//	FromImage, before there is a box: is anything stored, or does the box begin with its image's files?
//	Fill: take back what an earlier attempt left without a result ─► pull, or open ─► inputs
//	Push: confirm ─► push ─► note what was moved in the result
//	a file:  store ◄─► wsync.Syncer ◄─► boxTree ◄─► container.Files
//
// # Glossary
//
//   - Workspace: the files of one job in one attempt, and what is known of their stored state.
//   - Base: the stored state that the attempt began with.
package workspace
