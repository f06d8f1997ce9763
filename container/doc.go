// Package container says what a box is: the isolated place in which a job's
// steps run. It holds the contracts and the values; each technology that makes
// boxes has a folder of its own. It imports the standard library only.
//
//	Provider ──Prepare──► Image            once per image
//	   │
//	   └─────Create─────► Sandbox ──Start──► Exec · Exec · … ──► Remove
//	         (Spec)          │                (Command → Exit)
//	                         └── Files: the workspace, seen from inside
//
// # Glossary
//
//   - Box, Sandbox: the running container of one attempt; used once.
//   - Provider: makes boxes and finds those that are left over.
//   - Spec: what a box shall be. It is closed: nothing of an engine's own
//     options can be said in it.
//   - Policy: what the owner of the worker allows jobs to ask for.
//   - Command: one process tree in the box. Exit: how it ended.
//   - Workspace: the folder Spec.Workdir, the only place whose files count.
//   - Supervisor: the program that is process 1 of the box (container/supervisor).
//
// A command that exits with 1, is killed, or can't be found is an Exit. An error
// means that the box or its engine failed, and says nothing about the command.
//
// Implementations: container/docker, container/local (no isolation), and
// container/mock for tests. container/containertest is the suite that all pass.
package container
