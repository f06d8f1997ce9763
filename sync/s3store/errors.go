package s3store

import (
	"context"
	"errors"
	"fmt"
	"net/http"

	awshttp "github.com/aws/aws-sdk-go-v2/aws/transport/http"
	"github.com/aws/smithy-go"

	wsync "slipway/sync"
)

// wrap says what was done, what kind of error came of it, and which setting to look at.
func (s *Store) wrap(ctx context.Context, verb, key string, err error) error {
	if err == nil {
		return nil
	}
	what := verb + " s3://" + s.bucket
	if key != "" {
		what += "/" + key
	}
	if cause := context.Cause(ctx); cause != nil {
		return fmt.Errorf("%s: %w: %w", what, wsync.ErrUnavailable, cause)
	}
	advice, kind := classify(err)
	if kind == nil {
		return fmt.Errorf("%s: %w", what, err)
	}
	if kind == wsync.ErrNotFound || kind == wsync.ErrPrecondition { //nolint:errorlint // classify returns sentinels
		return fmt.Errorf("%s: %w", what, kind)
	}
	return fmt.Errorf("%s at %s: %w (%s): %w", what, s.endpoint, kind, advice, err)
}

// classify turns an error of the SDK into a sentinel and a next step. No kind: none fits.
func classify(err error) (advice string, kind error) {
	if api, ok := errors.AsType[smithy.APIError](err); ok {
		switch api.ErrorCode() {
		case "NoSuchBucket":
			return "check the bucket setting, or create the bucket", wsync.ErrNoBucket
		case "NoSuchKey", "NotFound":
			return "", wsync.ErrNotFound
		case "PreconditionFailed", "ConditionalRequestConflict":
			return "", wsync.ErrPrecondition
		case "AccessDenied", "InvalidAccessKeyId", "SignatureDoesNotMatch", "XAdminUserNotFound", "ExpiredToken", "InvalidToken", "AccountProblem":
			return "check the access key and the secret key, and their rights on the bucket", wsync.ErrDenied
		case "RequestTimeTooSkewed":
			return "set this machine's clock", wsync.ErrDenied
		}
	}
	resp, ok := errors.AsType[*awshttp.ResponseError](err)
	switch {
	case !ok || resp.Response == nil || resp.HTTPStatusCode() == 0:
		return "check the endpoint setting, and that the server is up", wsync.ErrUnavailable
	case resp.HTTPStatusCode() == http.StatusNotFound:
		return "", wsync.ErrNotFound
	case resp.HTTPStatusCode() == http.StatusPreconditionFailed:
		return "", wsync.ErrPrecondition
	case resp.HTTPStatusCode() == http.StatusForbidden, resp.HTTPStatusCode() == http.StatusUnauthorized:
		return "check the access key and the secret key, and their rights on the bucket", wsync.ErrDenied
	case resp.HTTPStatusCode() >= 500, resp.HTTPStatusCode() == http.StatusTooManyRequests, resp.HTTPStatusCode() == http.StatusConflict:
		return "the server is up but not well: see its log", wsync.ErrUnavailable
	}
	return "", nil
}

// isStatus tells whether a server answered with that status.
func isStatus(err error, status int) bool {
	resp, ok := errors.AsType[*awshttp.ResponseError](err)
	return ok && resp.Response != nil && resp.HTTPStatusCode() == status
}
