// Package house tests what no single package can: rules that two leaves state
// each for itself, since they do not know each other, and that must agree.
package house
