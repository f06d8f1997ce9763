// Package box is the life of boxes on one engine: from before a box is made until nothing of it is left, also after a
// worker that died. It knows nothing of attempts: an Owner names a box's owner, and a box may serve one attempt or many.
//
//	Fleet.Box(owner) ─► Start: mark as live, remove the boxes of earlier owners, create, start
//	                    Watch: remove it as soon as nobody may use it any more
//	                    Remove: by name, once, until it worked or time is over
//	Fleet.Reap ──────► what is expired, dead, or left over, of whatever worker
//
// # Glossary
//
//   - Fleet: all boxes of one worker. Live: a box whose owner has not removed it yet.
//   - Owner: whose a box is: its name, its labels, its fence.
//   - Fence: a number that grows from owner to owner of the same thing. Boxes with a lower one have lost the right to exist.
//   - Instance: the random id of a Fleet, by which a box is its. Orphan: a box whose worker's process has certainly ended.
//   - Reap: to remove what another worker, or an earlier life of this one, left: boxes, and volumes that lost theirs.
package box
