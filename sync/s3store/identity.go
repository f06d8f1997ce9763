package s3store

import (
	"cmp"
	"context"
	"errors"
	"fmt"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/config"
	"github.com/aws/aws-sdk-go-v2/credentials"
	"github.com/aws/smithy-go/logging"
)

// ErrNoCredentials is the error of a first request that nothing can sign: the Config has no keys, and the SDK's chain has found none, or could not get those that it found.
var ErrNoCredentials = errors.New("no credentials for the store")

// identity returns the keys that sign the requests, and the region that they are signed for. What c leaves out comes from
// the SDK's chain, as every program that uses the SDK has it. The chain is not asked for the region of an Endpoint of
// another service, which an AWS_REGION that is set for other programs would only spoil.
//
//nolint:contextcheck,nolintlint // no caller has to pass a context: variables and files are read, and nothing is waited for
func (c Config) identity() (keys aws.CredentialsProvider, region string, err error) {
	region = c.Region
	if c.AccessKey != "" {
		keys = credentials.NewStaticCredentialsProvider(c.AccessKey, c.SecretKey, c.SessionToken)
	}
	if keys == nil || region == "" && c.Endpoint == "" {
		load := []func(*config.LoadOptions) error{config.WithLogger(logging.Nop{})} // the program's stderr is not the SDK's
		if c.HTTPClient != nil {
			load = append(load, config.WithHTTPClient(c.HTTPClient))
		}
		chain, err := config.LoadDefaultConfig(context.Background(), load...) //nolint:forbidigo // as above
		if err != nil {
			return nil, "", fmt.Errorf("read the settings of the AWS SDK (variables AWS_…, ~/.aws): %w", err)
		}
		if keys == nil {
			keys = chainKeys{chain.Credentials}
		}
		if c.Endpoint == "" {
			region = cmp.Or(region, chain.Region)
		}
	}
	return keys, cmp.Or(region, defaultRegion), nil
}

// chainKeys are the keys of the SDK's chain, which keeps them until shortly before they expire.
type chainKeys struct{ chain aws.CredentialsProvider }

// Retrieve implements aws.CredentialsProvider.
func (k chainKeys) Retrieve(ctx context.Context) (aws.Credentials, error) {
	got, err := k.chain.Retrieve(ctx)
	if err != nil {
		return got, &chainError{err}
	}
	return got, nil
}

// chainError is why the chain gave no keys. It is an ErrNoCredentials.
type chainError struct{ sdk error }

// Error is the SDK's text.
func (e *chainError) Error() string { return e.sdk.Error() }

// Is makes it an ErrNoCredentials.
func (e *chainError) Is(target error) bool { return target == ErrNoCredentials }

// Unwrap returns the SDK's error.
func (e *chainError) Unwrap() error { return e.sdk }
