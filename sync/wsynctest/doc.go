// Package wsynctest holds what tests of workspaces need: a store in memory that can be told to
// fail, and the suites that every wsync.Store and every wsync.Tree must pass.
//
//	Run(t, factory)      ── a Store: wsynctest.Store, sync/filestore, sync/s3store on any server
//	RunTree(t, factory)  ── a Tree: sync/folder, the workspace of a box
//
// # Glossary
//
//   - Store: the twin; its conditions are exact, its faults are injected.
//   - Fault: what the next matching call suffers: an error before or after it took effect,
//     a delay, another body, or a function of the test that runs first.
package wsynctest
