package policyfile

import (
	"errors"
	"fmt"
	"os"
	"strings"

	"slipway/container"
	"slipway/internal/document"
	"slipway/internal/document/yamldoc"
)

// Load reads the policy in the file called name, which is YAML or JSON. The resources are the file's defaults, for
// boxes that ask for none; what they leave out is up to the policy. An empty file is the closed policy. The error has a
// line for each mistake, "name:line:column: key: what is wrong".
func Load(name string) (container.Policy, container.Resources, error) {
	data, err := read(name)
	if err != nil {
		return container.Policy{}, container.Resources{}, fmt.Errorf("read the policy: %w", err)
	}
	policy, defaults, err := Parse(data)
	var all document.Errors
	if !errors.As(err, &all) {
		return policy, defaults, err
	}
	lines := make([]string, len(all))
	for i, mistake := range all {
		lines[i] = mistake.In(name)
	}
	return policy, defaults, errors.New(strings.Join(lines, "\n"))
}

// kind is what the reader of policies adds to that of all documents.
var kind = document.Kind{Name: "policy"}

func read(name string) ([]byte, error) {
	f, err := os.Open(name)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	return kind.ReadAll(f)
}

// file is the form of a policy file.
type file struct {
	Allow    []container.Relaxation `json:"allow"`
	Always   []container.Relaxation `json:"always"`
	Images   []string               `json:"images"`
	Max      container.Resources    `json:"max"`
	Defaults container.Resources    `json:"defaults"`
}

// Parse is Load for the text of a file. Its error has a line for each mistake, "line 3, column 7: key: what is wrong".
func Parse(data []byte) (container.Policy, container.Resources, error) {
	root, err := yamldoc.Parse(data, &kind)
	var syntax *document.FieldError
	switch {
	case errors.As(err, &syntax):
		return container.Policy{}, container.Resources{}, document.Errors{syntax}
	case err != nil || root.Kind == document.Null:
		return container.Policy{}, container.Resources{}, err
	}
	var f file
	if err := kind.Decode(root, &f, f.check); err != nil {
		return container.Policy{}, container.Resources{}, err
	}
	return f.policy(), f.Defaults, nil
}

func (f *file) policy() container.Policy {
	return container.Policy{Allow: f.Allow, Always: f.Always, Images: f.Images, Max: f.Max}
}

// check adds what package container finds. Its keys are the file's.
func (f *file) check(m *document.Mistakes) {
	p := f.policy()
	for _, err := range []error{p.Validate(), p.ValidateDefaults(f.Defaults)} {
		var all container.PolicyErrors
		if errors.As(err, &all) {
			for _, wrong := range all {
				m.Fail(wrong.Key, "%s", wrong.Detail)
			}
		} else if err != nil {
			m.Fail("", "%s", err)
		}
	}
}
