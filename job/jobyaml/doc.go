// Package jobyaml reads jobs from files, which are YAML or JSON. It is the only
// importer of a YAML library; what a job may hold is decided by package job.
//
//	file ──► YAML ──► job.Node ─┐
//	     └─► JSON ──► job.Node ─┴─► job.DecodeNode ──► *job.Job, or job.Errors
//
// A file whose first character is '{' is JSON, everything else is YAML.
//
// # Which YAML
//
// One document. Anchors, aliases, merge keys and tags are refused: they make
// a small file stand for a huge one, and a job look different from what it is.
//
// Where a string is wanted, an unquoted value is taken as it is spelled: PORT: 8080 is
// "8080", version: 1.10 is "1.10", mode: 0755 is "0755", answer: no is "no". Only a missing
// value (nothing, ~ or null) is refused. Where a boolean is wanted there
// are true and false, and where a number is wanted it is decimal.
package jobyaml
