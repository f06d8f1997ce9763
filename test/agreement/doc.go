// Package agreement tests the rules that two packages state separately, since
// neither imports the other, and that must stay the same: which working
// directories are valid, and which words a job and a box use for one thing.
package agreement
