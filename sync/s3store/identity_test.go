package s3store_test

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/johannesboyne/gofakes3"
	"github.com/johannesboyne/gofakes3/backend/s3mem"

	"slipway/internal/hint"
	wsync "slipway/sync"
	"slipway/sync/s3store"
)

// seen is a request as a server sees it.
type seen struct {
	method, key, region, token, sse, kms string
}

var credentialRE = regexp.MustCompile(`Credential=([^/]+)/\d+/([^/]+)/`)

// witness is a server that notes who asks it, and for which region.
func witness(t *testing.T) (endpoint string, requests func() []seen) {
	t.Helper()
	var mu sync.Mutex
	var all []seen
	inner := gofakes3.New(s3mem.New()).Server()
	srv := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		s := seen{
			method: r.Method, token: r.Header.Get("X-Amz-Security-Token"),
			sse: r.Header.Get("X-Amz-Server-Side-Encryption"), kms: r.Header.Get("X-Amz-Server-Side-Encryption-Aws-Kms-Key-Id"),
		}
		if m := credentialRE.FindStringSubmatch(r.Header.Get("Authorization")); m != nil {
			s.key, s.region = m[1], m[2]
		}
		mu.Lock()
		all = append(all, s)
		mu.Unlock()
		inner.ServeHTTP(w, r)
	}))
	t.Cleanup(srv.Close)
	return srv.URL, func() []seen { mu.Lock(); defer mu.Unlock(); return slices.Clone(all) }
}

// withoutAWS hides what the machine of the test tells the SDK.
func withoutAWS(t *testing.T) {
	t.Helper()
	for _, kv := range os.Environ() {
		if name, _, _ := strings.Cut(kv, "="); strings.HasPrefix(name, "AWS_") {
			t.Setenv(name, "")
		}
	}
	t.Setenv("AWS_CONFIG_FILE", filepath.Join(t.TempDir(), "config"))
	t.Setenv("AWS_SHARED_CREDENTIALS_FILE", filepath.Join(t.TempDir(), "credentials"))
	t.Setenv("AWS_EC2_METADATA_DISABLED", "true")
}

// cloud is a server for all that gives temporary keys: STS, a container's and a machine's role.
func cloud(t *testing.T) string {
	t.Helper()
	expires := time.Now().Add(time.Hour).UTC().Format(time.RFC3339)
	role := func(key string) string {
		return fmt.Sprintf(`{"Code":"Success","AccessKeyId":%q,"SecretAccessKey":"s","Token":"T-%s","Expiration":%q}`, key, key, expires)
	}
	srv := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		answer := ""
		switch {
		case r.URL.Path == "/container":
			answer = role("CONTAINER")
		case r.URL.Path == "/latest/api/token":
			w.Header().Set("X-Aws-Ec2-Metadata-Token-Ttl-Seconds", "600")
			answer = "token"
		case strings.HasSuffix(r.URL.Path, "/security-credentials/"):
			answer = "worker"
		case strings.HasSuffix(r.URL.Path, "/security-credentials/worker"):
			answer = role("MACHINE")
		case bytes.Contains(body, []byte("WebIdentityToken=jwt")):
			w.Header().Set("Content-Type", "text/xml")
			answer = `<AssumeRoleWithWebIdentityResponse><AssumeRoleWithWebIdentityResult><Credentials><AccessKeyId>IRSA</AccessKeyId>` +
				`<SecretAccessKey>s</SecretAccessKey><SessionToken>T-IRSA</SessionToken><Expiration>` + expires + `</Expiration></Credentials></AssumeRoleWithWebIdentityResult></AssumeRoleWithWebIdentityResponse>`
		default:
			http.NotFound(w, r)
			return
		}
		io.WriteString(w, answer) //nolint:errcheck // the test's own client
	}))
	t.Cleanup(srv.Close)
	return srv.URL
}

// TestIdentity: static keys are used as they are; without them the SDK's chain is.
func TestIdentity(t *testing.T) {
	where := cloud(t)
	file := func(text string) string {
		path := filepath.Join(t.TempDir(), "file")
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		return path
	}
	for name, tc := range map[string]struct {
		cfg  s3store.Config
		env  map[string]string
		want seen
	}{
		"static": {
			cfg: s3store.Config{AccessKey: "STATIC", SecretKey: "s"}, env: map[string]string{"AWS_ACCESS_KEY_ID": "ENV", "AWS_SECRET_ACCESS_KEY": "s", "AWS_SESSION_TOKEN": "t"},
			want: seen{key: "STATIC"},
		},
		"static, with a token": {cfg: s3store.Config{AccessKey: "STATIC", SecretKey: "s", SessionToken: "T"}, want: seen{key: "STATIC", token: "T"}},
		"variables": {
			env:  map[string]string{"AWS_ACCESS_KEY_ID": "ENV", "AWS_SECRET_ACCESS_KEY": "s", "AWS_SESSION_TOKEN": "T-ENV"},
			want: seen{key: "ENV", token: "T-ENV"},
		},
		"a profile": {
			env:  map[string]string{"AWS_PROFILE": "team", "AWS_SHARED_CREDENTIALS_FILE": file("[team]\naws_access_key_id = PROFILE\naws_secret_access_key = s\n")},
			want: seen{key: "PROFILE"},
		},
		"a web identity": {
			env: map[string]string{
				"AWS_ROLE_ARN": "arn:aws:iam::1:role/x", "AWS_WEB_IDENTITY_TOKEN_FILE": file("jwt"), "AWS_ENDPOINT_URL_STS": where, "AWS_REGION": "us-east-1",
			},
			want: seen{key: "IRSA", token: "T-IRSA"},
		},
		"a container's role": {env: map[string]string{"AWS_CONTAINER_CREDENTIALS_FULL_URI": where + "/container"}, want: seen{key: "CONTAINER", token: "T-CONTAINER"}},
		"a machine's role": {
			env:  map[string]string{"AWS_EC2_METADATA_DISABLED": "false", "AWS_EC2_METADATA_SERVICE_ENDPOINT": where},
			want: seen{key: "MACHINE", token: "T-MACHINE"},
		},
		"another service has regions of its own": {
			cfg: s3store.Config{AccessKey: "STATIC", SecretKey: "s"}, env: map[string]string{"AWS_REGION": "eu-west-1"}, want: seen{key: "STATIC"},
		},
		"a region": {cfg: s3store.Config{AccessKey: "STATIC", SecretKey: "s", Region: "eu-west-1"}, want: seen{key: "STATIC", region: "eu-west-1"}},
	} {
		t.Run(name, func(t *testing.T) {
			withoutAWS(t)
			for k, v := range tc.env {
				t.Setenv(k, v)
			}
			endpoint, requests := witness(t)
			tc.cfg.Endpoint, tc.cfg.Bucket = endpoint, "bucket"
			s, err := s3store.New(tc.cfg)
			if err != nil {
				t.Fatal(err)
			}
			defer s.Close()
			if err := s.EnsureBucket(t.Context()); err != nil {
				t.Fatal(err)
			}
			if tc.want.region == "" {
				tc.want.region = "us-east-1"
			}
			got := requests()[0]
			if got.key != tc.want.key || got.token != tc.want.token || got.region != tc.want.region {
				t.Errorf("got %+v, want %+v", got, tc.want)
			}
		})
	}
}

// TestIdentity_Amazon: without an endpoint the region is that of the chain.
func TestIdentity_Amazon(t *testing.T) {
	for name, tc := range map[string]struct {
		region, env, want string
	}{"none": {"", "", "us-east-1"}, "of the chain": {"", "eu-west-1", "eu-west-1"}, "given": {"eu-north-1", "eu-west-1", "eu-north-1"}} {
		withoutAWS(t)
		t.Setenv("AWS_REGION", tc.env)
		var asked string
		client := &http.Client{Transport: transport(func(r *http.Request) (*http.Response, error) {
			asked = r.URL.Host + " " + credentialRE.FindStringSubmatch(r.Header.Get("Authorization"))[2]
			return &http.Response{StatusCode: http.StatusNotFound, Header: http.Header{}, Body: http.NoBody, Request: r}, nil
		})}
		s, err := s3store.New(s3store.Config{Bucket: "b", Region: tc.region, AccessKey: "a", SecretKey: "s", HTTPClient: client})
		if err != nil {
			t.Fatal(err)
		}
		if _, err := s.Get(t.Context(), "k"); !errors.Is(err, wsync.ErrNotFound) {
			t.Fatal(err)
		}
		if !strings.Contains(asked, "."+tc.want+".") || !strings.HasSuffix(asked, " "+tc.want) {
			t.Errorf("%s: asked %s, want region %s in both", name, asked, tc.want)
		}
	}
}

type transport func(*http.Request) (*http.Response, error)

func (f transport) RoundTrip(r *http.Request) (*http.Response, error) { return f(r) }

// TestIdentity_None: a chain that finds nothing says so, and not that the server is away.
func TestIdentity_None(t *testing.T) {
	withoutAWS(t)
	endpoint, requests := witness(t)
	s, err := s3store.New(s3store.Config{Endpoint: endpoint, Bucket: "bucket"})
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	err = s.SelfTest(t.Context())
	if !errors.Is(err, s3store.ErrNoCredentials) || !errors.Is(err, wsync.ErrDenied) || !strings.Contains(hint.Of(err), "profile or a role") {
		t.Errorf("got %v (%s), want ErrNoCredentials and a hint", err, hint.Of(err))
	}
	if n := len(requests()); n != 0 {
		t.Errorf("the server was asked %d times, want not at all", n)
	}
	withoutAWS(t)
	t.Setenv("AWS_PROFILE", "nowhere")
	if _, err := s3store.New(s3store.Config{Endpoint: endpoint, Bucket: "bucket"}); err == nil || !strings.Contains(err.Error(), "nowhere") {
		t.Errorf("a profile that is not there: got %v, want an error that names it", err)
	}
}

// TestEncryption: each way to write an object asks for the encryption.
func TestEncryption(t *testing.T) {
	endpoint, requests := witness(t)
	const key = "arn:aws:kms:eu-west-1:1:key/x"
	s, err := s3store.New(s3store.Config{Endpoint: endpoint, Bucket: "bucket", AccessKey: "a", SecretKey: "s", SSE: "aws:kms", SSEKMSKeyID: key})
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	if err := s.EnsureBucket(t.Context()); err != nil {
		t.Fatal(err)
	}
	begun := len(requests())
	if _, err := s.Put(t.Context(), "small", strings.NewReader("x"), 1, wsync.PutOptions{}); err != nil {
		t.Fatal(err)
	}
	if err := s.PutStream(t.Context(), "large", bytes.NewReader(make([]byte, 20<<20)), 20<<20); err != nil {
		t.Fatal(err)
	}
	asked := 0
	for _, r := range requests()[begun:] {
		if r.sse == "aws:kms" && r.kms == key {
			asked++
		}
	}
	if asked != 2 { // the parts of a large one have that of its beginning
		t.Errorf("%d requests asked for it, want 2: %+v", asked, requests()[begun:])
	}
}
