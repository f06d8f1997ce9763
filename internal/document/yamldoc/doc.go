// Package yamldoc reads documents from files, which are YAML or JSON. It is the only importer of a YAML library; what a
// document may hold is decided by package document.
//
//	file ──► YAML ──► document.Node ─┐
//	     └─► JSON ──► document.Node ─┴─► Kind.Decode ──► a struct, or document.Errors
//
// A file whose first character is '{' is JSON, everything else is YAML.
//
// # Which YAML
//
// One document. Anchors, aliases, merge keys and tags are refused: with them a small file can stand for a huge one,
// and a document can look different from what it is.
//
// Where a string is wanted, an unquoted value is taken as it is spelled: PORT: 8080 is "8080", version: 1.10 is
// "1.10", mode: 0755 is "0755", answer: no is "no". Only a missing value (nothing, ~ or null) is refused. A boolean
// is true or false, and a number is decimal.
package yamldoc
