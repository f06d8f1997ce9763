package s3store

import (
	"context"
	"crypto/md5" //nolint:gosec // S3's own integrity check
	"encoding/base64"
	"encoding/hex"
	"fmt"
	"io"

	"github.com/aws/aws-sdk-go-v2/aws"
	v4 "github.com/aws/aws-sdk-go-v2/aws/signer/v4"
	"github.com/aws/aws-sdk-go-v2/service/s3"
	"github.com/aws/smithy-go/middleware"
)

// seal gives a write the checksum by which the server tells a damaged body from a whole one, and puts content at its start.
//
// Once the self-test has seen that the server compares it, that is the SHA-256 of the signature: known
// beforehand for a pack, and on most processors cheaper than MD5. Some servers only look at
// the signature, though; until it is proved, it is a Content-MD5, and both sides save the other hash.
func (s *Store) seal(content io.ReadSeeker, sum [32]byte) (contentMD5 *string, sign func(*s3.Options), err error) {
	if s.checksSHA.Load() {
		_, err := content.Seek(0, io.SeekStart) // the SDK begins where it stands
		return nil, signedBody(sum), err
	}
	m := md5.New() //nolint:gosec // see the import
	if err := rewind(content, func() error { _, err := io.Copy(m, content); return err }); err != nil {
		return nil, nil, fmt.Errorf("read the body: %w", err)
	}
	return aws.String(base64.StdEncoding.EncodeToString(m.Sum(nil))), unsignedBody, nil
}

// rewind runs fn with content at its start, and puts it back there.
func rewind(content io.Seeker, fn func() error) error {
	if _, err := content.Seek(0, io.SeekStart); err != nil {
		return err
	}
	if err := fn(); err != nil {
		return err
	}
	_, err := content.Seek(0, io.SeekStart)
	return err
}

// unsignedBody leaves the body's SHA-256 out of the signature, which has the Content-MD5 in it.
func unsignedBody(o *s3.Options) {
	o.APIOptions = append(o.APIOptions, v4.SwapComputePayloadSHA256ForUnsignedPayloadMiddleware)
}

// signedBody signs sum as the body's SHA-256. A zero sum: the SDK makes it.
func signedBody(sum [32]byte) func(*s3.Options) {
	if sum == ([32]byte{}) {
		return func(*s3.Options) {}
	}
	known := middleware.FinalizeMiddlewareFunc("KnownPayloadSHA256", func(
		ctx context.Context, in middleware.FinalizeInput, next middleware.FinalizeHandler,
	) (middleware.FinalizeOutput, middleware.Metadata, error) {
		return next.HandleFinalize(v4.SetPayloadHash(ctx, hex.EncodeToString(sum[:])), in)
	})
	return func(o *s3.Options) {
		o.APIOptions = append(o.APIOptions, func(stack *middleware.Stack) error {
			return stack.Finalize.Add(known, middleware.Before)
		})
	}
}
