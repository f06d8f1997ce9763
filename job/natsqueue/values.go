package natsqueue

import (
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"maps"
	"net/url"
	"os"
	"slices"
	"strconv"
	"strings"

	"github.com/nats-io/nats.go"
)

// The checks of single values of a Config, for programs that read these values under names of their own. Their errors say
// what is wanted.

// CheckURL wants the addresses of servers, separated by commas. Its error repeats no address: it may hold a password.
func CheckURL(list string) error {
	for s := range strings.SplitSeq(list, ",") {
		if s = strings.TrimSpace(s); s == "" || !isServer(s) {
			return errors.New("want the address of a nats-server such as nats://127.0.0.1:4222, or several with commas")
		}
	}
	return nil
}

// isServer accepts what the client library accepts. The library adds a missing scheme and port.
func isServer(s string) bool {
	if !strings.Contains(s, "://") {
		s = "nats://" + s
	}
	u, err := url.Parse(s)
	if err != nil || u.Hostname() == "" || !slices.Contains([]string{"nats", "tls", "ws", "wss"}, u.Scheme) {
		return false
	}
	_, err = strconv.ParseUint(u.Port(), 10, 16)
	return u.Port() == "" || err == nil
}

// CheckCreds wants a file with the credentials of a NATS user: a JWT and a seed.
func CheckCreds(file string) error {
	var opts nats.Options
	err := nats.UserCredentials(file)(&opts)
	if err == nil {
		_, err = opts.UserJWT()
	}
	if err == nil {
		_, err = opts.SignatureCB(nil)
	}
	if err != nil {
		return fmt.Errorf("want a file with NATS credentials: %w", err)
	}
	return nil
}

// CheckNkey wants a file with the seed of a NATS user's NKey.
func CheckNkey(file string) error {
	if _, err := nats.NkeyOptionFromSeed(file); err != nil {
		return fmt.Errorf("want a file with the seed of a user's NKey, which begins with SU: %w", err)
	}
	return nil
}

// CheckCA wants a PEM file with certificates of authorities.
func CheckCA(file string) error {
	data, err := os.ReadFile(file)
	if err == nil && !x509.NewCertPool().AppendCertsFromPEM(data) {
		err = fmt.Errorf("%s has no certificate in it", file)
	}
	if err != nil {
		return fmt.Errorf("want a PEM file with the certificates of authorities: %w", err)
	}
	return nil
}

// CheckCert wants two PEM files: a certificate, and the key that belongs to it.
func CheckCert(cert, key string) error {
	if cert == "" || key == "" {
		return errors.New("want both, a certificate and its key")
	}
	if _, err := tls.LoadX509KeyPair(cert, key); err != nil {
		return fmt.Errorf("want PEM files with a certificate and its key: %w", err)
	}
	return nil
}

// CheckInboxPrefix wants a subject without wildcards.
func CheckInboxPrefix(prefix string) error {
	for token := range strings.SplitSeq(prefix, ".") {
		if token == "" || strings.ContainsFunc(token, func(r rune) bool { return r == '*' || r == '>' || r <= ' ' || r == 0x7f }) {
			return fmt.Errorf("want a subject such as _INBOX.team, without wildcards and spaces, not %.60q", prefix)
		}
	}
	return nil
}

// CheckPrefix wants a beginning for the names of streams and subjects.
func CheckPrefix(prefix string) error { return checkName(prefix) }

// CheckQueues wants the names of queues, each once.
func CheckQueues(queues []string) error {
	for i, q := range queues {
		if err := checkName(q); err != nil {
			return err
		}
		if slices.Contains(queues[:i], q) {
			return fmt.Errorf("%s is given twice", q)
		}
	}
	return nil
}

// maxWeight bounds the share of one queue.
const maxWeight = 100

// CheckWeights wants shares from 1 to 100, of queues that are served.
func CheckWeights(queues []string, weights map[string]int) error {
	for _, q := range slices.Sorted(maps.Keys(weights)) {
		if !slices.Contains(queues, q) {
			return fmt.Errorf("%.40q is none of the queues", q)
		}
		if w := weights[q]; w < 1 || w > maxWeight {
			return fmt.Errorf("want 1 to %d for %s, not %d", maxWeight, q, w)
		}
	}
	return nil
}

func checkName(s string) error {
	if !queueName.MatchString(s) {
		return fmt.Errorf("want a-z, 0-9 and '-', at most 32 and not '-' first, not %.40q", s)
	}
	return nil
}

// CheckReplicas wants how many copies of a stream a server can keep.
func CheckReplicas(n int) error {
	if !slices.Contains([]int{1, 3, 5}, n) {
		return fmt.Errorf("want 1, 3 or 5, not %d", n)
	}
	return nil
}
