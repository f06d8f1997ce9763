// Package leftovers kills workers and engines, and looks whether a box or a volume outlives them. A worker is this test's own
// program, which embeds one and gives it jobs from memory.
//
// A private engine (dockerd with a network, a data folder and a socket of its own) is killed as well, which needs root and
// Linux. The long variants run with SLIPWAY_TEST_LONG=1: `make leftovers`.
package leftovers
