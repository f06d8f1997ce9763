// Package docker makes boxes on a Docker engine, near or far, from API version
// 1.40 on. It is the only importer of the moby client.
//
//	Create ── pure: Spec → request ──► engine: container, never started
//	Start  ── attach (stdin is the dead-man line), start, greet ──► supervisor.Session
//	Remove ── drop the line, wait while it works; still there: kill and remove ──► container and volume really gone
//
// Provider holds the boxes. What it rests on has types of its own: api (calls with deadlines and typed errors), puller
// (images), delivery (the supervisor's volume), leftovers (volumes of boxes that are gone).
//
// # What it leaves on an engine
//
// One read-only volume per build of the supervisor, slipway-supervisor-<digest>, which
// the first box fills from an image made in memory. The image and the container that fill it
// are removed at once. Boxes remove themselves with their volumes as soon as their worker's connection ends. A volume that
// the engine keeps all the same is on the list of boxes as what remains of one, and goes by its box's name.
//
// # The network of a closed box
//
// NetworkDisabled instead of network mode none alone: on Docker 20.10 a start then takes 104
// ms instead of 234, since no network sandbox is set up; the box still has a network namespace
// of its own with nothing but lo. The engine then writes no /etc/hosts, so the supervisor's
// volume carries one, which is mounted by its path on the engine's machine: that path comes from
// the engine itself and is right for a remote one too (a volume's sub-path would need API 1.45).
//
// # Glossary
//
//   - Box: a container made by Provider.Create. Ghost: one that was made and never started,
//     such as by a call that ran into its deadline although the engine went on.
//   - Leftover: a volume whose box is gone. Wiper: the container that empties one which the engine can't remove.
//   - Fill: making the supervisor's volume, or checking it. Filler: the container that does it.
//   - Lifecycle: creating, starting and removing. About one per core at a time is as fast as an
//     engine gets (sixteen at once make each ten times slower), so that a semaphore guards it.
package docker
