package natsqueue_test

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"fmt"
	"math/big"
	"net"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/nats-io/nkeys"

	"slipway/internal/hint"
	"slipway/job/natsqueue"
	"slipway/job/natsqueue/natsserver"
)

// authority signs certificates for a test.
type authority struct {
	t    *testing.T
	dir  string
	cert *x509.Certificate
	key  *ecdsa.PrivateKey
	file string // its own certificate
}

func newAuthority(t *testing.T, name string) *authority {
	t.Helper()
	a := &authority{t: t, dir: t.TempDir()}
	template := &x509.Certificate{IsCA: true, BasicConstraintsValid: true, KeyUsage: x509.KeyUsageCertSign}
	a.cert, a.key = a.sign(name, template)
	a.file, _ = a.write(name, a.cert, a.key)
	return a
}

// issue makes a certificate for this machine, and returns the files of it and of its key.
func (a *authority) issue(name string) (cert, key string) {
	a.t.Helper()
	c, k := a.sign(name, &x509.Certificate{
		KeyUsage: x509.KeyUsageDigitalSignature, IPAddresses: []net.IP{net.IPv4(127, 0, 0, 1)},
		ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth, x509.ExtKeyUsageClientAuth},
	})
	return a.write(name, c, k)
}

func (a *authority) sign(name string, template *x509.Certificate) (*x509.Certificate, *ecdsa.PrivateKey) {
	a.t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		a.t.Fatal(err)
	}
	template.SerialNumber = big.NewInt(time.Now().UnixNano())
	template.Subject = pkix.Name{CommonName: name}
	template.NotBefore, template.NotAfter = time.Now().Add(-time.Hour), time.Now().Add(time.Hour)
	parent, signer := a.cert, a.key
	if parent == nil {
		parent, signer = template, key
	}
	der, err := x509.CreateCertificate(rand.Reader, template, parent, &key.PublicKey, signer)
	if err != nil {
		a.t.Fatal(err)
	}
	cert, err := x509.ParseCertificate(der)
	if err != nil {
		a.t.Fatal(err)
	}
	return cert, key
}

func (a *authority) write(name string, c *x509.Certificate, k *ecdsa.PrivateKey) (cert, key string) {
	a.t.Helper()
	der, err := x509.MarshalPKCS8PrivateKey(k)
	if err != nil {
		a.t.Fatal(err)
	}
	cert, key = filepath.Join(a.dir, name+".pem"), filepath.Join(a.dir, name+".key")
	for file, block := range map[string]*pem.Block{cert: {Type: "CERTIFICATE", Bytes: c.Raw}, key: {Type: "PRIVATE KEY", Bytes: der}} {
		if err := os.WriteFile(file, pem.EncodeToMemory(block), 0o600); err != nil {
			a.t.Fatal(err)
		}
	}
	return cert, key
}

// nkeyFile makes an NKey, and returns its public key and the file of its seed.
func nkeyFile(t *testing.T) (public, file string) {
	t.Helper()
	pair, err := nkeys.CreateUser()
	if err != nil {
		t.Fatal(err)
	}
	seed, err := pair.Seed()
	if err != nil {
		t.Fatal(err)
	}
	public, err = pair.PublicKey()
	if err != nil {
		t.Fatal(err)
	}
	file = filepath.Join(t.TempDir(), "user.nk")
	if err := os.WriteFile(file, seed, 0o600); err != nil {
		t.Fatal(err)
	}
	return public, file
}

// TestIdentity connects to a server that has a certificate of its own authority, wants one from its clients, and knows
// them by their NKeys.
func TestIdentity(t *testing.T) {
	t.Parallel()
	ours, theirs := newAuthority(t, "ours"), newAuthority(t, "theirs")
	serverCert, serverKey := ours.issue("server")
	cert, key := ours.issue("client")
	strangerCert, strangerKey := theirs.issue("stranger")
	public, nkey := nkeyFile(t)
	_, otherNkey := nkeyFile(t)
	good := natsqueue.Config{CAFile: ours.file, CertFile: cert, KeyFile: key, NkeyFile: nkey, InboxPrefix: "_INBOX_team", Timing: fast}
	for _, first := range []bool{false, true} {
		conf := filepath.Join(t.TempDir(), "nats.conf")
		text := fmt.Sprintf(`tls {cert_file: %q, key_file: %q, ca_file: %q, verify: true, handshake_first: %t}
authorization {users = [{nkey: %s, permissions: {subscribe: {allow: ["_INBOX_team.>", "slipway.>"]}}}]}
`, serverCert, serverKey, ours.file, first, public)
		if err := os.WriteFile(conf, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		srv, err := natsserver.Start(natsserver.Options{Dir: t.TempDir(), Config: conf})
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(srv.Close)
		for name, tc := range map[string]struct {
			edit func(*natsqueue.Config)
			want string // in the error, empty: none
		}{
			"all":                   {func(*natsqueue.Config) {}, ""},
			"no authority":          {func(c *natsqueue.Config) { c.CAFile = "" }, "no TLS with the server"},
			"another authority":     {func(c *natsqueue.Config) { c.CAFile = theirs.file }, "no TLS with the server"},
			"no certificate":        {func(c *natsqueue.Config) { c.CertFile, c.KeyFile = "", "" }, "no TLS with the server"},
			"another's certificate": {func(c *natsqueue.Config) { c.CertFile, c.KeyFile = strangerCert, strangerKey }, "no TLS with the server"},
			"no NKey":               {func(c *natsqueue.Config) { c.NkeyFile = "" }, "refused the credentials"},
			"another NKey":          {func(c *natsqueue.Config) { c.NkeyFile = otherNkey }, "refused the credentials"},
		} {
			cfg := good
			cfg.URL, cfg.TLSFirst = strings.Replace(srv.ClientURL(), "nats://", "tls://", 1), first
			tc.edit(&cfg)
			conn, err := natsqueue.Connect(t.Context(), cfg)
			if err == nil {
				err = conn.Setup(t.Context()) // the answers come to the inbox that the account may read
				conn.Close()
			}
			if tc.want == "" && err != nil || tc.want != "" && (err == nil || !strings.Contains(err.Error(), tc.want) || hint.Of(err) == "") {
				t.Errorf("TLS first %t, %s: got %v (%s), want %q and a hint", first, name, err, hint.Of(err), tc.want)
			}
		}
	}
}

// TestIdentity_Files: a file that can't be used is named with its field, before anything is connected.
func TestIdentity_Files(t *testing.T) {
	t.Parallel()
	ours := newAuthority(t, "ours")
	cert, key := ours.issue("client")
	_, otherKey := ours.issue("other")
	_, nkey := nkeyFile(t)
	for name, tc := range map[string]struct {
		cfg  natsqueue.Config
		want []string
	}{
		"no certificate in it": {natsqueue.Config{CAFile: key}, []string{"CAFile", key}},
		"a CA that is away":    {natsqueue.Config{CAFile: "/no/such"}, []string{"CAFile", "/no/such"}},
		"certificate alone":    {natsqueue.Config{CertFile: cert}, []string{"CertFile and KeyFile", "both"}},
		"key alone":            {natsqueue.Config{KeyFile: key}, []string{"CertFile and KeyFile", "both"}},
		"key of another":       {natsqueue.Config{CertFile: cert, KeyFile: otherKey}, []string{"CertFile and KeyFile", "private key does not match"}},
		"seed of another kind": {natsqueue.Config{NkeyFile: cert}, []string{"NkeyFile", "SU"}},
		"two credentials":      {natsqueue.Config{NkeyFile: nkey, CredsFile: credsFile(t)}, []string{"CredsFile", "NkeyFile"}},
		"inbox of all":         {natsqueue.Config{InboxPrefix: "_INBOX.>"}, []string{"InboxPrefix", "wildcards"}},
		"inbox with a gap":     {natsqueue.Config{InboxPrefix: "a..b"}, []string{"InboxPrefix"}},
	} {
		tc.cfg.URL = "nats://127.0.0.1:1"
		_, err := natsqueue.Connect(t.Context(), tc.cfg)
		if err == nil {
			t.Errorf("%s: connected", name)
			continue
		}
		contains(t, err, tc.want...)
	}
}

// credsFile makes a file with credentials that can be read. No server would take them.
func credsFile(t *testing.T) string {
	t.Helper()
	_, nkey := nkeyFile(t)
	seed, err := os.ReadFile(nkey)
	if err != nil {
		t.Fatal(err)
	}
	file := filepath.Join(t.TempDir(), "user.creds")
	text := "-----BEGIN NATS USER JWT-----\ne30.e30.e30\n------END NATS USER JWT------\n\n-----BEGIN USER NKEY SEED-----\n" + string(seed) + "\n------END USER NKEY SEED------\n"
	if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	return file
}
