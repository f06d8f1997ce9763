package job

import _ "embed"

// The schemas of a job and of a result, and the tables of docs/job.md, are made from the types, their comments
// and the rules of Validate; tests prove that the files are what would be made.
//
//go:generate go test -run ^TestSchema(s|Page)$ . -update

//go:embed schema.json
var schema string

// Schema returns the JSON Schema (draft 2020-12) of a job. Decode may still refuse a job that fits it: a schema can't
// express sizes in bytes, ranges of durations, clean paths, and rules between distant fields.
func Schema() []byte { return []byte(schema) }
