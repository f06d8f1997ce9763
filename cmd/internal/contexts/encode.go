package contexts

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"slipway/internal/hint"
)

// encode writes the values as a config file.
func encode(values map[string]string) []byte {
	var b bytes.Buffer
	group := ""
	for _, key := range slices.Sorted(maps.Keys(values)) { // a group's keys stand together: all have the same beginning
		value, _ := json.Marshal(values[key]) // a string of JSON is one of YAML, and can always be written
		name := key
		if top, below, nested := strings.Cut(key, "."); nested {
			if top != group {
				fmt.Fprintf(&b, "%s:\n", top)
			}
			group, name = top, "  "+below
		}
		fmt.Fprintf(&b, "%s: %s\n", name, value)
	}
	return b.Bytes()
}

// natsContext is the part of a context of the nats command that says where a server is. Its other fields are the ways of that
// command.
type natsContext struct {
	URL         string `json:"url"`
	Token       string `json:"token"`
	User        string `json:"user"`
	Password    string `json:"password"`
	Creds       string `json:"creds"`
	Nkey        string `json:"nkey"`
	CA          string `json:"ca"`
	Cert        string `json:"cert"`
	Key         string `json:"key"`
	InboxPrefix string `json:"inbox_prefix"`
	TLSFirst    bool   `json:"tls_first"`
	// What slipway does not have.
	NSC      string `json:"nsc"`
	JWT      string `json:"user_jwt"`
	Domain   string `json:"jetstream_domain"`
	API      string `json:"jetstream_api_prefix"`
	SOCKS    string `json:"socks_proxy"`
	UserSeed string `json:"user_seed"`
}

// FromNATS reads the settings of a context of the nats command. One that says what slipway has no setting for is refused.
func (s Store) FromNATS(name string) (map[string]string, error) {
	path := filepath.Join(s.config, "nats", "context", name+".json")
	data, err := os.ReadFile(path)
	if errors.Is(err, fs.ErrNotExist) || !nameRE.MatchString(name) {
		return nil, hint.With(fmt.Errorf("context %.70q of the nats command: %w", name, ErrUnknown), "nats context list shows those that are there")
	}
	if err != nil {
		return nil, err
	}
	var c natsContext
	if err := json.Unmarshal(data, &c); err != nil {
		return nil, fmt.Errorf("%s is no context of the nats command", path) // its text may have a password in it
	}
	for field, value := range map[string]string{
		"nsc": c.NSC, "user_jwt": c.JWT, "user_seed": c.UserSeed, "jetstream_domain": c.Domain, "jetstream_api_prefix": c.API, "socks_proxy": c.SOCKS,
	} {
		if value != "" {
			return nil, fmt.Errorf("%s: slipway has no setting for %s", path, field)
		}
	}
	where, err := c.urls()
	if err != nil {
		return nil, fmt.Errorf("%s: %w", path, err)
	}
	values := map[string]string{
		"nats.url": where, "nats.creds": s.file(c.Creds), "nats.nkey": s.file(c.Nkey), "nats.tls_ca": s.file(c.CA),
		"nats.tls_cert": s.file(c.Cert), "nats.tls_key": s.file(c.Key), "nats.inbox_prefix": c.InboxPrefix,
	}
	if c.TLSFirst {
		values["nats.tls_first"] = "true"
	}
	maps.DeleteFunc(values, func(_, v string) bool { return v == "" })
	return values, nil
}

// urls are the servers, with user and password or token in them.
func (c natsContext) urls() (string, error) {
	if c.User == "" && c.Token == "" || c.URL == "" {
		return c.URL, nil
	}
	all := strings.Split(c.URL, ",")
	for i, one := range all {
		if !strings.Contains(one, "://") {
			one = "nats://" + strings.TrimSpace(one)
		}
		u, err := url.Parse(strings.TrimSpace(one))
		if err != nil {
			return "", errors.New("url is no list of servers")
		}
		switch {
		case c.Token != "":
			u.User = url.User(c.Token)
		case c.Password != "":
			u.User = url.UserPassword(c.User, c.Password)
		default:
			u.User = url.User(c.User)
		}
		all[i] = u.String()
	}
	return strings.Join(all, ","), nil
}

// file is the path of a file, which the nats command lets begin with ~.
func (s Store) file(path string) string {
	if rest, ok := strings.CutPrefix(path, "~/"); ok {
		if home, err := os.UserHomeDir(); err == nil {
			return filepath.Join(home, rest)
		}
	}
	return path
}
