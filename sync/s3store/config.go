package s3store

import (
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"regexp"
	"strconv"
	"strings"
	"sync/atomic"
	"time"
	"unicode"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/aws/ratelimit"
	"github.com/aws/aws-sdk-go-v2/aws/retry"
	"github.com/aws/aws-sdk-go-v2/service/s3"
)

const (
	defaultRegion = "us-east-1"
	bulkTries     = 6
	maxBackoff    = 5 * time.Second
	// connections is how many idle ones are kept. The SDK's default of 10 makes more workers than that reconnect.
	connections = 64
)

// Config says where the objects are. Bucket is required.
type Config struct {
	// Endpoint is the server's URL, http://host:port. Empty: AWS itself.
	Endpoint string
	// Region for the signature. Default: without an Endpoint that of the AWS SDK's chain (AWS_REGION, the profile), else us-east-1.
	Region string
	// Bucket that holds everything.
	Bucket string
	// AccessKey and SecretKey sign the requests. Without them the AWS SDK's chain is asked: the variables AWS_ACCESS_KEY_ID and
	// so on, the profile in ~/.aws, a web identity, the role of a container or of the machine. New reads variables and files
	// for it; the first request asks who has to be asked.
	AccessKey, SecretKey string
	// SessionToken goes with temporary keys. It needs AccessKey and SecretKey.
	SessionToken string
	// SSE is how the server encrypts what is written: AES256, aws:kms or aws:kms:dsse. Default: as the bucket says.
	SSE string
	// SSEKMSKeyID is the id, the ARN or the alias of the KMS key, with an SSE of aws:kms or aws:kms:dsse. Default: the account's key for S3.
	SSEKMSKeyID string
	// PathStyle puts the bucket into the path, not into the host's name. With an Endpoint it is always on.
	PathStyle bool
	// HTTPClient replaces the default one, for tests and proxies.
	HTTPClient *http.Client
}

func (c Config) validate() error {
	var errs []error
	if c.Endpoint != "" {
		errs = append(errs, named("endpoint", CheckEndpoint(c.Endpoint)))
	}
	if c.Region != "" {
		errs = append(errs, named("region", CheckRegion(c.Region)))
	}
	errs = append(errs, named("bucket", CheckBucket(c.Bucket)))
	if (c.AccessKey == "") != (c.SecretKey == "") || c.SessionToken != "" && c.AccessKey == "" {
		errs = append(errs, errors.New("access key and secret key: both are required, or neither and no session token"))
	}
	if c.SSE != "" {
		errs = append(errs, named("encryption", CheckSSE(c.SSE)))
	}
	return errors.Join(append(errs, named("encryption key", CheckKMSKey(c.SSE, c.SSEKMSKeyID)), named("access key", CheckKey(c.AccessKey)),
		named("secret key", CheckKey(c.SecretKey)), named("session token", CheckKey(c.SessionToken)))...)
}

func named(field string, err error) error {
	if err == nil {
		return nil
	}
	return fmt.Errorf("%s: %w", field, err)
}

// The Check functions check single values for a program that has its own names for the settings. Their errors name no
// setting and say which values are accepted.

// CheckEndpoint accepts the URL of a server.
func CheckEndpoint(endpoint string) error {
	const want = "want a URL such as http://127.0.0.1:7070"
	u, err := url.Parse(endpoint)
	switch {
	case strings.Contains(endpoint, "@"): // before all that repeats it: it may be a key
		return errors.New(want + ", without a user: keys have fields of their own")
	case err != nil, u.Scheme != "http" && u.Scheme != "https", u.Hostname() == "", u.RawQuery != "", u.Fragment != "":
		return fmt.Errorf("%s, not %.100q", want, endpoint)
	}
	if port := u.Port(); port != "" {
		if _, err := strconv.ParseUint(port, 10, 16); err != nil {
			return fmt.Errorf("%s: port %.20s does not exist", want, port)
		}
	}
	return nil
}

var (
	bucketRE = regexp.MustCompile(`^[A-Za-z0-9][A-Za-z0-9._-]{0,254}$`) // what any server takes; the server itself is stricter
	regionRE = regexp.MustCompile(`^[A-Za-z0-9][A-Za-z0-9_-]{0,63}$`)
)

// CheckBucket accepts the name of a bucket.
func CheckBucket(bucket string) error {
	switch {
	case bucket == "":
		return errors.New("required")
	case !bucketRE.MatchString(bucket):
		return fmt.Errorf("want a bucket's name, of letters, digits, '.', '_' and '-', not %.100q", bucket)
	}
	return nil
}

// CheckRegion accepts the name of a region.
func CheckRegion(region string) error {
	if !regionRE.MatchString(region) {
		return fmt.Errorf("want a region such as us-east-1, not %.100q", region)
	}
	return nil
}

// CheckKey refuses a key with white space or control characters, which were copied by mistake. The server would only say
// that it does not know the key.
func CheckKey(key string) error {
	if strings.ContainsFunc(key, func(r rune) bool { return unicode.IsSpace(r) || unicode.IsControl(r) }) {
		return errors.New("must not contain a space or a line break")
	}
	return nil
}

// Store is the wsync.Store of one bucket. It is safe for concurrent use.
type Store struct {
	bulk, single *s3.Client
	bucket       string
	endpoint     string // for messages
	idle         func()
	encrypt      encryption
	checksSHA    atomic.Bool // the server refuses a body that isn't the signed one; see seal
}

// New returns the store of a bucket. It makes no request; EnsureBucket and SelfTest do.
func New(cfg Config) (*Store, error) {
	if err := cfg.validate(); err != nil {
		return nil, fmt.Errorf("configure the S3 store: %w", err)
	}
	keys, region, err := cfg.identity()
	if err != nil {
		return nil, fmt.Errorf("configure the S3 store: %w", err)
	}
	client := cfg.HTTPClient
	if client == nil {
		transport := http.DefaultTransport.(*http.Transport).Clone()
		transport.MaxIdleConns = connections
		transport.MaxIdleConnsPerHost = connections
		transport.ResponseHeaderTimeout = responseTime
		// A server that is down answers the first packet or none; the default of 30 s would hide that from six tries.
		client = &http.Client{Transport: transport}
	}
	s := &Store{bucket: cfg.Bucket, endpoint: cfg.Endpoint, idle: client.CloseIdleConnections, encrypt: cfg.encryption()}
	if s.endpoint == "" {
		s.endpoint = "AWS S3 in " + region
	}
	base := s3.Options{
		Region: region, Credentials: keys, HTTPClient: client, UsePathStyle: cfg.PathStyle || cfg.Endpoint != "",
		RequestChecksumCalculation:                aws.RequestChecksumCalculationWhenRequired,
		ResponseChecksumValidation:                aws.ResponseChecksumValidationWhenRequired,
		DisableLogOutputChecksumValidationSkipped: true,
	}
	if cfg.Endpoint != "" {
		base.BaseEndpoint = &cfg.Endpoint
	}
	s.bulk = s3.New(base, withRetryer(func() aws.Retryer {
		return retry.NewStandard(func(o *retry.StandardOptions) {
			o.MaxAttempts = bulkTries
			o.MaxBackoff = maxBackoff
			// The SDK's quota of about 35 retries per client is empty after one restart of the server.
			o.RateLimiter = ratelimit.None
			// Two writers in one folder of a server on a file system: the folder vanished in between.
			o.Retryables = append(o.Retryables, retry.RetryableHTTPStatusCode{Codes: map[int]struct{}{http.StatusConflict: {}}})
		})
	}))
	s.single = s3.New(base, withRetryer(func() aws.Retryer { return aws.NopRetryer{} }))
	return s, nil
}

func withRetryer(retryer func() aws.Retryer) func(*s3.Options) {
	return func(o *s3.Options) { o.Retryer = retryer() }
}

// Close drops the idle connections. Calls under way go on.
func (s *Store) Close() { s.idle() }
