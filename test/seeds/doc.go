// Package seeds tests docs/seeds.md, the page that says what slipway covers of the
// documents that it started from: each row is there once, each package and test that
// a row names is in the tree, and the counts at the top are those of the rows.
package seeds
