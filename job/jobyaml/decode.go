package jobyaml

import (
	"slipway/internal/document"
	"slipway/internal/document/yamldoc"
	"slipway/job"
)

// Decode reads one job from a YAML or JSON file and validates it. Its error is
// job.Errors: every mistake with its field, line and column.
func Decode(data []byte) (*job.Job, error) { return job.DecodeBy(parse, data) }

func parse(data []byte, kind *document.Kind) (*document.Node, error) {
	root, err := yamldoc.Parse(data, kind)
	if err == nil && root.Kind == document.Null {
		return nil, &job.FieldError{Line: root.Line, Column: root.Column, Message: "the job is empty"}
	}
	return root, err
}
