// Package jobyaml reads jobs from files, which are YAML or JSON. What a job may hold is decided by package job.
//
//	file ──► YAML or JSON, with places ──► job.DecodeBy ──► *job.Job, or job.Errors
//
// A file whose first character is '{' is JSON, everything else is YAML.
//
// # Which YAML
//
// One document. Anchors, aliases, merge keys and tags are refused: with them a small file can stand for a huge one,
// and a job can look different from what it is.
//
// Where a string is wanted, an unquoted value is taken as it is spelled: PORT: 8080 is "8080", version: 1.10 is
// "1.10", mode: 0755 is "0755", answer: no is "no". Only a missing value (nothing, ~ or null) is refused. A boolean
// is true or false, and a number is decimal.
package jobyaml
