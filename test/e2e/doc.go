// Package e2e runs whole jobs as a user would: the built binaries bin/worker and
// bin/submit, a real Docker Engine, a real nats-server and a real S3 gateway in
// containers. make e2e builds and runs it.
//
// Every test ends with the same question (bundle.assertNothingLeft): is there a
// container, network or volume of its workers left? .ci/leftovers asks it for the whole engine.
package e2e
