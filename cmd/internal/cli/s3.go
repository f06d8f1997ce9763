package cli

import (
	"errors"
	"fmt"

	"slipway/cmd/internal/settings"
	"slipway/internal/hint"
	wsync "slipway/sync"
	"slipway/sync/s3store"
)

// S3 says where the store is.
type S3 struct {
	// The fields mean what those of s3store.Config mean.
	Endpoint, Region, Bucket, AccessKey, SecretKey, SessionToken, SSE, SSEKMSKeyID string
	// PathStyle is that of s3store.Config, too.
	PathStyle bool
}

// Register adds the settings that both programs have. without says what an empty bucket means.
func (c *S3) Register(set *settings.Set, without string) {
	set.String(&c.Endpoint, "s3.endpoint", "", "URL of the S3 service; empty: Amazon's").Check(UnlessEmpty(&c.Endpoint, s3store.CheckEndpoint))
	set.String(&c.Region, "s3.region", "", "region of the bucket; default: for Amazon's own service AWS_REGION or the profile's, else us-east-1").
		Check(UnlessEmpty(&c.Region, s3store.CheckRegion))
	set.String(&c.Bucket, "s3.bucket", "", "bucket for workspaces, inputs and logs; empty: "+without).
		Check(UnlessEmpty(&c.Bucket, s3store.CheckBucket))
	set.Bool(&c.PathStyle, "s3.path_style", true, "bucket in the URL's path, not in the host's name")
	set.Secret(&c.AccessKey, "s3.access_key", "access key; default: as the AWS SDK finds it: AWS_ACCESS_KEY_ID and so on, the profile in ~/.aws, a role").
		Check(func() error { return s3store.CheckKey(c.AccessKey) })
	set.Secret(&c.SecretKey, "s3.secret_key", "secret key; goes with the access key").
		Check(func() error { return s3store.CheckKey(c.SecretKey) })
	set.Secret(&c.SessionToken, "s3.session_token", "session token of temporary keys; goes with both").
		Check(func() error { return s3store.CheckKey(c.SessionToken) })
	set.Together(func() error {
		if c.Bucket == "" && c.Endpoint != "" {
			return errors.New("s3.bucket is not set: name the bucket with --s3-bucket or SLIPWAY_S3_BUCKET")
		}
		return nil
	}, "s3.endpoint")
	set.Together(func() error {
		if (c.AccessKey == "") != (c.SecretKey == "") || c.SessionToken != "" && c.AccessKey == "" {
			return errors.New("s3.access_key and s3.secret_key go together: set SLIPWAY_S3_ACCESS_KEY and SLIPWAY_S3_SECRET_KEY, or neither and no session token")
		}
		return nil
	}, "s3.access_key", "s3.secret_key", "s3.session_token")
}

// RegisterEncryption adds what those who write objects can ask of the server.
func (c *S3) RegisterEncryption(set *settings.Set) {
	set.String(&c.SSE, "s3.sse", "", "how the server encrypts what is written: AES256, aws:kms or aws:kms:dsse; default: as the bucket says").
		Check(UnlessEmpty(&c.SSE, s3store.CheckSSE))
	set.String(&c.SSEKMSKeyID, "s3.sse_kms_key_id", "", "id, ARN or alias of the KMS key; default: the account's key for S3")
	set.Together(func() error { return s3store.CheckKMSKey(c.SSE, c.SSEKMSKeyID) }, "s3.sse", "s3.sse_kms_key_id")
}

// UnlessEmpty is check for a text that may be left out.
func UnlessEmpty(p *string, check func(string) error) func() error {
	return func() error {
		if *p == "" {
			return nil
		}
		return check(*p)
	}
}

// Open opens the store and makes no request. It is nil if there is no bucket. The caller calls Close.
func (c *S3) Open() (*s3store.Store, error) {
	if c.Bucket == "" {
		return nil, nil
	}
	return s3store.New(c.Config())
}

// Config is what Open opens the store with.
func (c *S3) Config() s3store.Config {
	return s3store.Config{
		Endpoint: c.Endpoint, Region: c.Region, Bucket: c.Bucket, AccessKey: c.AccessKey, SecretKey: c.SecretKey, SessionToken: c.SessionToken,
		PathStyle: c.PathStyle, SSE: c.SSE, SSEKMSKeyID: c.SSEKMSKeyID,
	}
}

// Name says for people where the store is. It has no secrets.
func (c *S3) Name() string {
	if c.Endpoint == "" {
		return "s3://" + c.Bucket
	}
	return fmt.Sprintf("s3://%s at %s", c.Bucket, settings.MaskURLs(c.Endpoint))
}

// Explain gives an error of the store its hint: which setting to look at.
func (c *S3) Explain(err error) error {
	advice := "Is it running there? Set --s3-endpoint or SLIPWAY_S3_ENDPOINT"
	switch {
	case errors.Is(err, s3store.ErrNoCredentials):
		advice = "Set SLIPWAY_S3_ACCESS_KEY and SLIPWAY_S3_SECRET_KEY, or give the AWS SDK what it looks for: AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY, AWS_PROFILE, or a role of this machine"
	case errors.Is(err, wsync.ErrNoBucket):
		advice = "Make the bucket, name another one with --s3-bucket or SLIPWAY_S3_BUCKET, or let the worker make it with --s3-create-bucket or SLIPWAY_S3_CREATE_BUCKET=true"
	case errors.Is(err, wsync.ErrDenied):
		advice = "Check SLIPWAY_S3_ACCESS_KEY and SLIPWAY_S3_SECRET_KEY, and that these keys may read, write, list and delete in the bucket (SLIPWAY_S3_BUCKET)"
	case errors.Is(err, wsync.ErrUnsafeStore):
		advice = "This service can't keep workspaces safe. Use one that honors If-Match and If-None-Match on PUT, and set SLIPWAY_S3_ENDPOINT to it"
	}
	return hint.With(err, "%s", advice)
}
