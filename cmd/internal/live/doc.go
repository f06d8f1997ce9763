// Package live shows a job to a person, or to a script, while it runs: the events
// as they come, then the result.
//
//	job.Client ──Follow──► events ─┐
//	           ──Result──► result ─┴─► Printer ─► terminal (Human) or JSON lines (JSON)
//
// A job's output, and every name that a job carries, is untrusted. What reaches a
// terminal has passed Cleaner, which lets through text, newlines and tabs, and
// nothing that could move the cursor, rename the window or fake another line.
package live
