package job

import _ "embed"

// The schemas, and the tables of docs/job.md, are made from the types, their comments
// and the rules of Validate; tests prove that the files are what would be made.
//
//go:generate go test -run ^TestSchema(s|Page)$ . -update

//go:embed schema.json
var schema string

//go:embed result.schema.json
var resultSchema string

// Schema returns the JSON Schema (draft 2020-12) of a job. What it accepts
// Decode may still refuse: sizes in bytes, ranges of durations, clean paths and rules
// between distant fields can't be said in a schema.
func Schema() []byte { return []byte(schema) }

// ResultSchema returns the JSON Schema (draft 2020-12) of a Result.
func ResultSchema() []byte { return []byte(resultSchema) }
