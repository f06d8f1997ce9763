// Command mutate asks of a package's tests what no coverage figure tells: would they notice if the code were wrong?
//
// It changes the package in one place at a time (a mutant), runs the tests that pass through that place, and reports
// the mutants that no test noticed: the survivors. A survivor is a missing test, or code that makes no difference,
// or a change that means the same. The last two are judged once, in a file, and not printed again.
//
//	go run ./test/mutate [flags] package
//
//	package ─ load ─► source ─ mutants ─► mutant ─┐
//	   └───── cover ─► test, time, blocks ────────┴─ try ─► killed · timed out · survived ─ judged? ─► report
//
// A mutant is an edit of one range of bytes. It reaches the compiler by `-overlay`, so nothing is ever written into the
// tree. Mutants that do not compile are found by go/types and cost milliseconds; they are counted, not tried. Only places
// that a test reaches are tried, and only the tests that reach the place are run, quick ones first. The time limit of a
// run is a multiple of what these tests took without a mutation.
//
// A mutant counts as noticed when a test fails or does not end. So a test that fails by itself now and then makes the
// report too good; mutate refuses to start if one fails while it measures.
//
// What tests run in another process (the supervisor in a box, a re-executed test binary) is not seen by the
// measurement, so such places count as not reached. With -all they are tried against all tests.
package main
