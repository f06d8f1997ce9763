package s3store

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"strings"

	awshttp "github.com/aws/aws-sdk-go-v2/aws/transport/http"
	"github.com/aws/smithy-go"

	"slipway/internal/hint"
	wsync "slipway/sync"
)

// wrap says what was done and what kind of error came of it. Its hint says which setting to look at.
func (s *Store) wrap(ctx context.Context, verb, key string, err error) error {
	if err == nil {
		return nil
	}
	what := verb + " s3://" + s.bucket
	if key != "" {
		what += "/" + key
	}
	where := what + " at " + s.endpoint
	if cause := context.Cause(ctx); cause != nil {
		return fmt.Errorf("%s: %w: %w", where, wsync.ErrUnavailable, cause)
	}
	fact, advice, kind := classify(err)
	if kind == nil {
		return fmt.Errorf("%s: %w", where, &briefError{err})
	}
	if kind == wsync.ErrNotFound || kind == wsync.ErrPrecondition { //nolint:errorlint // classify returns sentinels
		return fmt.Errorf("%s: %w", what, kind)
	}
	if fact != "" {
		where += ": " + fact
	}
	return hint.With(fmt.Errorf("%s: %w: %w", where, kind, &briefError{err}), "%s", advice)
}

// briefError says the cause alone. The SDK's own text tells each of its layers, with the URL and ids of a hundred characters.
type briefError struct{ sdk error }

// Error is the server's code and message, or what kept the request from the server.
func (e *briefError) Error() string {
	text := e.sdk.Error()
	if chain, ok := errors.AsType[*chainError](e.sdk); ok {
		text = chain.Error()
	} else if api, ok := errors.AsType[smithy.APIError](e.sdk); ok {
		text = api.ErrorCode()
		if m := api.ErrorMessage(); m != "" && m != text {
			text += ": " + m
		}
	} else if request, ok := errors.AsType[*url.Error](e.sdk); ok {
		text = request.Err.Error()
	} else if op, ok := errors.AsType[*smithy.OperationError](e.sdk); ok {
		text = op.Err.Error()
	}
	return strings.Join(strings.Fields(text), " ")
}

// Unwrap returns the SDK's error.
func (e *briefError) Unwrap() error { return e.sdk }

// classify turns an error of the SDK into a sentinel, with what else is known of the cause, and a hint. No kind: none fits.
func classify(err error) (fact, advice string, kind error) {
	if errors.Is(err, ErrNoCredentials) { // before what kept the chain from them, which is no answer of the store
		return ErrNoCredentials.Error(), "give the store an access key and a secret key, or the AWS SDK's chain a variable, a profile or a role", wsync.ErrDenied
	}
	if api, ok := errors.AsType[smithy.APIError](err); ok {
		switch api.ErrorCode() {
		case "NoSuchBucket":
			return "", "check the bucket setting, or create the bucket", wsync.ErrNoBucket
		case "NoSuchKey", "NotFound":
			return "", "", wsync.ErrNotFound
		case "PreconditionFailed", "ConditionalRequestConflict":
			return "", "", wsync.ErrPrecondition
		case "AccessDenied", "InvalidAccessKeyId", "SignatureDoesNotMatch", "XAdminUserNotFound", "ExpiredToken", "InvalidToken", "AccountProblem":
			return "", checkKeys, wsync.ErrDenied
		case "RequestTimeTooSkewed":
			return "this machine's clock is not the server's", "set this machine's clock", wsync.ErrDenied
		}
	}
	resp, ok := errors.AsType[*awshttp.ResponseError](err)
	switch {
	case !ok || resp.Response == nil || resp.HTTPStatusCode() == 0:
		return "", "check the endpoint setting, and that the server is up", wsync.ErrUnavailable
	case resp.HTTPStatusCode() == http.StatusNotFound:
		return "", "", wsync.ErrNotFound
	case resp.HTTPStatusCode() == http.StatusPreconditionFailed:
		return "", "", wsync.ErrPrecondition
	case resp.HTTPStatusCode() == http.StatusForbidden, resp.HTTPStatusCode() == http.StatusUnauthorized:
		return "", checkKeys, wsync.ErrDenied
	case resp.HTTPStatusCode() >= 500, resp.HTTPStatusCode() == http.StatusTooManyRequests, resp.HTTPStatusCode() == http.StatusConflict:
		return "the server is up but not well", "see the server's log", wsync.ErrUnavailable
	}
	return "", "", nil
}

const checkKeys = "check the access key and the secret key, and their rights on the bucket"

// isStatus tells whether a server answered with that status.
func isStatus(err error, status int) bool {
	resp, ok := errors.AsType[*awshttp.ResponseError](err)
	return ok && resp.Response != nil && resp.HTTPStatusCode() == status
}
