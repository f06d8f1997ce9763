package credentials

import (
	"context"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"strings"

	"slipway/container/docker"
)

// hub is the registry of image names that name none.
const hub = "docker.io"

// File is a config.json of the docker command. It is safe for concurrent use.
type File struct {
	// Path of the file. One that is not there has no credentials.
	Path string
	// Optional: a file that this user may not read has no credentials either. Else that is an error.
	Optional bool
	// Text is what the file would have, in place of Path.
	Text string
}

// Get returns the credential of the registry with that host. It is the zero Auth if there is none. Its errors name the file
// and the registry, and repeat no secret. It runs a helper program for up to 30 s.
func (f File) Get(ctx context.Context, registry string) (docker.Auth, error) {
	c, err := f.read()
	if err != nil {
		return docker.Auth{}, err
	}
	if name, server := c.helper(registry); name != "" {
		auth, err := ask(ctx, name, server)
		if err != nil || auth != (docker.Auth{}) {
			return auth, err
		}
	}
	for server, entry := range c.Auths {
		if host(server) != registry {
			continue
		}
		auth, err := entry.decode()
		if err != nil {
			return docker.Auth{}, fmt.Errorf("read %s: auths: %s: %w", f.name(), server, err)
		}
		if auth != (docker.Auth{}) {
			return auth, nil
		}
	}
	return docker.Auth{}, nil
}

// Check reads the file, and runs nothing.
func (f File) Check() error {
	c, err := f.read()
	if err != nil {
		return err
	}
	for server, entry := range c.Auths {
		if _, err := entry.decode(); err != nil {
			return fmt.Errorf("read %s: auths: %s: %w", f.name(), server, err)
		}
	}
	return nil
}

func (f File) name() string {
	if f.Text != "" {
		return "the credentials of registries"
	}
	return f.Path
}

func (f File) read() (c config, err error) {
	data := []byte(f.Text)
	if f.Text == "" {
		data, err = os.ReadFile(f.Path)
		if errors.Is(err, fs.ErrNotExist) || f.Optional && errors.Is(err, fs.ErrPermission) {
			return config{}, nil
		}
		if err != nil {
			return config{}, fmt.Errorf("read credentials of registries: %w", err)
		}
	}
	c, err = parse(data)
	if err != nil {
		return config{}, fmt.Errorf("read %s: %w", f.name(), err)
	}
	return c, nil
}

// config is the part of the file that is about credentials. The docker command keeps much else in it.
type config struct {
	Auths       map[string]entry  `json:"auths"`
	CredHelpers map[string]string `json:"credHelpers"`
	CredsStore  string            `json:"credsStore"`
}

// parse reads a config.json. Its error repeats nothing of the text but for names: any of the rest may be a secret.
func parse(data []byte) (config, error) {
	var c config
	err := json.Unmarshal(data, &c)
	var kind *json.UnmarshalTypeError
	switch {
	case errors.As(err, &kind):
		return config{}, fmt.Errorf("%s: want another kind of value than %s", kind.Field, strings.Fields(kind.Value)[0])
	case err != nil:
		return config{}, errors.New("not the JSON of a config.json of the docker command")
	}
	for _, name := range append([]string{c.CredsStore}, values(c.CredHelpers)...) {
		if name != "" && !helperRE.MatchString(name) {
			return config{}, fmt.Errorf("want the NAME of a program docker-credential-NAME, not %.60q", name)
		}
	}
	return c, nil
}

func values(m map[string]string) []string {
	var out []string
	for _, v := range m {
		out = append(out, v)
	}
	return out
}

// helper returns the helper of a registry, and how the file, or else the docker command, names the registry to it.
func (c config) helper(registry string) (name, server string) {
	for server, name := range c.CredHelpers {
		if host(server) == registry {
			return name, server
		}
	}
	if registry == hub {
		return c.CredsStore, "https://index.docker.io/v1/"
	}
	return c.CredsStore, registry
}

// host is the registry that a key of the file means: the key may be a URL, as it was in the first version of the format.
func host(server string) string {
	server = strings.TrimPrefix(strings.TrimPrefix(server, "https://"), "http://")
	server, _, _ = strings.Cut(server, "/")
	switch server {
	case "index.docker.io", "registry-1.docker.io":
		return hub
	}
	return server
}

// entry is what the file has for one registry.
type entry struct {
	Auth          string `json:"auth"` // base64 of user:password
	Username      string `json:"username"`
	Password      string `json:"password"`
	IdentityToken string `json:"identitytoken"`
}

func (e entry) decode() (docker.Auth, error) {
	a := docker.Auth{Username: e.Username, Password: e.Password, IdentityToken: e.IdentityToken}
	if e.Auth == "" {
		return a, nil
	}
	text, err := base64.StdEncoding.DecodeString(e.Auth)
	user, password, ok := strings.Cut(string(text), ":")
	if err != nil || !ok {
		return docker.Auth{}, errors.New("auth: want the base64 of user:password")
	}
	a.Username, a.Password = user, strings.Trim(password, "\x00") // as the docker command does
	return a, nil
}
