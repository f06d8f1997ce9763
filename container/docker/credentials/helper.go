package credentials

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os/exec"
	"regexp"
	"strings"
	"time"

	"slipway/container/docker"
	"slipway/internal/hint"
)

const (
	// helperTimeout is what a helper may take. Those of clouds ask a server for a token.
	helperTimeout = 30 * time.Second
	// mostAnswer bounds a helper's answer, in bytes.
	mostAnswer = 64 << 10
	// noCredentials is the protocol's word for a registry that the helper does not know.
	noCredentials = "credentials not found in native keychain"
	// tokenUser is the protocol's user name for an identity token.
	tokenUser = "<token>"
)

// helperRE keeps the name of a program from being a path.
var helperRE = regexp.MustCompile(`^[A-Za-z0-9][A-Za-z0-9._-]*$`)

// ask runs docker-credential-NAME get. A helper that knows no credential for server gives the zero Auth.
func ask(ctx context.Context, name, server string) (docker.Auth, error) {
	program := "docker-credential-" + name
	within, cancel := context.WithTimeout(ctx, helperTimeout)
	defer cancel()
	cmd := exec.CommandContext(within, program, "get")
	cmd.WaitDelay = time.Second // a child of the helper may hold its output open
	cmd.Stdin = strings.NewReader(server)
	var out bounded
	cmd.Stdout = &out
	err := cmd.Run()
	var exit *exec.ExitError
	switch {
	case err == nil:
		return answer(program, server, out.Bytes())
	case ctx.Err() != nil:
		return docker.Auth{}, fmt.Errorf("ask %s for the credentials of %s: %w", program, server, context.Cause(ctx))
	case within.Err() != nil:
		return docker.Auth{}, fmt.Errorf("ask %s for the credentials of %s: no answer within %s", program, server, helperTimeout)
	case errors.Is(err, exec.ErrNotFound):
		return docker.Auth{}, hint.With(fmt.Errorf("ask for the credentials of %s: %w", server, err), "install %s on the worker's machine, in a folder of its PATH", program)
	case !errors.As(err, &exit):
		return docker.Auth{}, fmt.Errorf("ask for the credentials of %s: %w", server, err)
	}
	// By the protocol the message of a failure is on stdout.
	message := strings.TrimSpace(out.String())
	if strings.HasPrefix(message, noCredentials) {
		return docker.Auth{}, nil
	}
	return docker.Auth{}, fmt.Errorf("ask %s for the credentials of %s: %w: %.200q", program, server, err, message)
}

// answer reads what a helper said. Its error does not repeat it, since it has a secret in it.
func answer(program, server string, out []byte) (docker.Auth, error) {
	var a struct{ Username, Secret string }
	if err := json.Unmarshal(out, &a); err != nil || a.Secret == "" {
		return docker.Auth{}, fmt.Errorf("ask %s for the credentials of %s: its answer is not {\"Username\":…,\"Secret\":…}", program, server)
	}
	if a.Username == tokenUser {
		return docker.Auth{IdentityToken: a.Secret}, nil
	}
	return docker.Auth{Username: a.Username, Password: a.Secret}, nil
}

// bounded keeps the beginning of what is written to it.
type bounded struct{ bytes.Buffer }

// Write takes all, and keeps what there is room for.
func (b *bounded) Write(p []byte) (int, error) {
	b.Buffer.Write(p[:min(len(p), mostAnswer-b.Len())])
	return len(p), nil
}
