// Package excerpt cuts what steps print, and other texts, to the sizes that a result has room for.
//
//	Write, Write, … ─► Excerpt (head and tail, in bounded memory) ─► job.Output (valid UTF-8, bounded in JSON)
//
// # Glossary
//
//   - Excerpt: the first and the last bytes of a stream. Size: how many of each.
package excerpt
