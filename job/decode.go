package job

import (
	"fmt"

	"slipway/internal/document"
)

// Decode reads one job from JSON and validates it. Its error is Errors: every
// mistake with its field and place, or one if the text is no JSON at all.
// Package jobyaml reads files, which may be YAML.
func Decode(data []byte) (*Job, error) {
	return DecodeBy(func(data []byte, kind *document.Kind) (*document.Node, error) { return kind.Parse(data) }, data)
}

// DecodeBy is Decode for a job in another notation, which parse reads. It is for package jobyaml: other modules can't
// import the types of parse.
func DecodeBy(parse func([]byte, *document.Kind) (*document.Node, error), data []byte) (*Job, error) {
	root, err := parse(data, &kind)
	if err != nil {
		if foreign := foreignText(data); foreign != nil {
			return nil, Errors{foreign}
		}
		return nil, asErrors(err)
	}
	if err := checkForeign(root); err != nil {
		return nil, Errors{err}
	}
	if err := checkVersion(root); err != nil {
		return nil, Errors{err}
	}
	var j Job
	if err := kind.Decode(root, &j, j.check); err != nil {
		return nil, err
	}
	return &j, nil
}

// asErrors turns the one error of a parser into Errors, so that all callers see one type.
func asErrors(err error) error {
	if field, ok := err.(*FieldError); ok { //nolint:errorlint // parsers wrap nothing
		return Errors{field}
	}
	return err
}

// checkVersion looks at the version before all else: a job of another version may hold what is a mistake in this one.
func checkVersion(root *document.Node) *FieldError {
	for _, m := range root.Members {
		isText := m.Value.Kind == document.String || m.Value.Kind == document.Number
		if m.Key == "version" && isText && m.Value.Text != "" && m.Value.Text != Version {
			return &FieldError{Path: "version", Line: m.Value.Line, Column: m.Value.Column, Message: wrongVersion(m.Value.Text)}
		}
	}
	return nil
}

func wrongVersion(v string) string {
	return fmt.Sprintf("%s is not supported: this slipway reads version %q", document.Quote(v), Version)
}
