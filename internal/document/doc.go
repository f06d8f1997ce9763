// Package document reads everything that slipway is told in writing: jobs, settings, policies, and the states of
// workspaces. Each of them is a Kind; the rules and the words of the messages are the same for all.
//
//	                   ┌─ Kind.Parse ───► Node ─┐
//	JSON ──► Reader ───┤                        ├─ Kind.Decode ──► a struct   jobs, policies
//	                   │  YAML ─yamldoc─► Node ─┤
//	                   │                        └─ EachMember ───► values     settings
//	                   └─ Object, Array, … ─────────────────────► a State     states
//
// A document that a person writes is read as a whole, into Nodes, and all its mistakes are told at once, with line and
// column. A state is written by a program and may have many megabytes: the Reader goes through it once, and stops at
// the first mistake.
//
// What is refused, in which words:
//
//	unknown field      timout: unknown field: did you mean "timeout"?
//	duplicate key      image: given twice, first on line 1
//	wrong form         steps[0].run: want a string, not a number: put quotes around it
//	no value           timeout: no value is given: want a duration such as "90s", or leave it out
//	trailing data      data after the end of the job
//	too deep           nested deeper than 32 levels
//	too large          2000000 bytes, more than the 1048576 (1 MiB) allowed
//	other bytes        byte 0xff is not UTF-8: save the text as UTF-8
//
// A state keeps unknown fields: a later version put them there, and they must survive a rewrite.
//
// # Glossary
//
//   - Kind: one kind of document, with its limits and the words that only its messages have.
//   - Node: a value of a text with its place, the same for JSON and YAML.
//   - FieldError: one mistake, with the path of its field and its place. Errors: all of them.
//   - Mistakes: what collects them while a document is checked.
//   - Reader: the walk over a JSON text, value by value.
package document
