package s3store

import (
	"context"
	"crypto/rand"
	"crypto/sha256"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"
	"sync"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/s3"
	"github.com/aws/aws-sdk-go-v2/service/s3/types"
	"github.com/aws/smithy-go"

	wsync "slipway/sync"
)

// EnsureBucket creates the bucket if it isn't there. Errors: ErrDenied, ErrUnavailable.
func (s *Store) EnsureBucket(ctx context.Context) error {
	call, cancel := deadline(ctx, 0)
	defer cancel()
	_, err := s.bulk.HeadBucket(call, &s3.HeadBucketInput{Bucket: &s.bucket})
	if err == nil {
		return nil
	}
	if err := s.wrap(call, "find the bucket", "", err); !errors.Is(err, wsync.ErrNotFound) && !errors.Is(err, wsync.ErrNoBucket) {
		return err
	}
	in := &s3.CreateBucketInput{Bucket: &s.bucket}
	if region := s.bulk.Options().Region; region != defaultRegion {
		in.CreateBucketConfiguration = &types.CreateBucketConfiguration{LocationConstraint: types.BucketLocationConstraint(region)}
	}
	_, err = s.bulk.CreateBucket(call, in)
	if api, ok := errors.AsType[smithy.APIError](err); ok && strings.HasPrefix(api.ErrorCode(), "BucketAlreadyOwnedByYou") {
		return nil // somebody was quicker
	}
	return s.wrap(call, "create the bucket", "", err)
}

const (
	testPrefix = "selftest/"
	racers     = 8
)

// SelfTest proves on the real bucket that the server does what the commit of a workspace
// rests on: it keeps both conditions, also against eight writers at once, refuses a body that
// arrives damaged, and returns what was written. Otherwise the error is ErrUnsafeStore and says which. It
// removes what it wrote. Run it when a worker starts.
func (s *Store) SelfTest(ctx context.Context) (err error) {
	prefix := testPrefix + strings.ToLower(rand.Text()) + "/"
	t := &selfTest{Store: s, prefix: prefix}
	defer func() {
		clean, cancel := context.WithTimeout(context.WithoutCancel(ctx), abortTime)
		defer cancel()
		if left := s.Delete(clean, t.keys()...); err == nil {
			err = left // after a failed test it would only say the same again
		}
	}()
	for _, step := range []func(context.Context) error{t.createTwice, t.staleSwap, t.createRace, t.swapRace, t.damaged} {
		if err := step(ctx); err != nil {
			return fmt.Errorf("test the S3 store: %w", err)
		}
	}
	return nil
}

type selfTest struct {
	*Store
	prefix string
}

func (t *selfTest) keys() []string {
	keys := []string{"create", "swap", "race", "damaged"}
	for i := range keys {
		keys[i] = t.prefix + keys[i]
	}
	return keys
}

func (t *selfTest) write(ctx context.Context, name, content string, opts wsync.PutOptions) (string, error) {
	return t.Put(ctx, t.prefix+name, strings.NewReader(content), int64(len(content)), opts)
}

func (t *selfTest) holds(ctx context.Context, name, want string) error {
	obj, err := t.Get(ctx, t.prefix+name)
	if err != nil {
		return err
	}
	got, err := io.ReadAll(io.LimitReader(obj.Body, 1024))
	if err = errors.Join(err, obj.Body.Close()); err != nil {
		return fmt.Errorf("read back %s: %w", obj.Key, err)
	}
	if string(got) != want {
		return t.unsafe("a write that was refused or replaced is read back")
	}
	return nil
}

func (t *selfTest) unsafe(what string) error {
	return fmt.Errorf("%s: %w: %s", t.endpoint, wsync.ErrUnsafeStore, what)
}

func (t *selfTest) createTwice(ctx context.Context) error {
	if _, err := t.write(ctx, "create", "first", wsync.PutOptions{IfNoneMatch: true}); errors.Is(err, wsync.ErrPrecondition) {
		return t.unsafe("If-None-Match: * is refused for an object that does not exist")
	} else if err != nil {
		return err
	}
	_, err := t.write(ctx, "create", "second", wsync.PutOptions{IfNoneMatch: true})
	if err == nil {
		return t.unsafe("If-None-Match: * is ignored")
	}
	if !errors.Is(err, wsync.ErrPrecondition) {
		return err
	}
	return t.holds(ctx, "create", "first")
}

func (t *selfTest) staleSwap(ctx context.Context) error {
	old, err := t.write(ctx, "swap", "one", wsync.PutOptions{})
	if err != nil {
		return err
	}
	if _, err = t.write(ctx, "swap", "two", wsync.PutOptions{IfMatch: old}); errors.Is(err, wsync.ErrPrecondition) {
		return t.unsafe("If-Match refuses the ETag that the server gave")
	} else if err != nil {
		return err
	}
	_, err = t.write(ctx, "swap", "three", wsync.PutOptions{IfMatch: old})
	if err == nil {
		return t.unsafe("If-Match is ignored")
	}
	if !errors.Is(err, wsync.ErrPrecondition) {
		return err
	}
	return t.holds(ctx, "swap", "two")
}

func (t *selfTest) createRace(ctx context.Context) error {
	return t.race(ctx, "race", wsync.PutOptions{IfNoneMatch: true})
}

func (t *selfTest) swapRace(ctx context.Context) error {
	obj, err := t.Get(ctx, t.prefix+"swap")
	if err != nil {
		return err
	}
	obj.Body.Close()
	return t.race(ctx, "swap", wsync.PutOptions{IfMatch: obj.ETag})
}

// race lets writers loose on one key: exactly one may win.
func (t *selfTest) race(ctx context.Context, name string, opts wsync.PutOptions) error {
	var wg sync.WaitGroup
	results := make([]error, racers)
	for i := range racers {
		wg.Go(func() { _, results[i] = t.write(ctx, name, fmt.Sprintf("writer %d", i), opts) })
	}
	wg.Wait()
	winner, wins := 0, 0
	for i, err := range results {
		switch {
		case err == nil:
			winner = i
			wins++
		case !errors.Is(err, wsync.ErrPrecondition):
			return err
		}
	}
	if wins != 1 {
		return t.unsafe(fmt.Sprintf("%d of %d concurrent conditional writes succeeded", wins, racers))
	}
	return t.holds(ctx, name, fmt.Sprintf("writer %d", winner))
}

// damaged sends a body with another one's checksum, and chooses by that how bodies are sealed from now on.
func (t *selfTest) damaged(ctx context.Context) error {
	other := sha256.Sum256([]byte("another body"))
	refused, err := t.refuses(ctx, nil, signedBody(other))
	if err != nil {
		return err
	}
	t.checksSHA.Store(refused)
	if refused {
		return nil
	}
	refused, err = t.refuses(ctx, aws.String("XrY7u+Ae7tCTyyK7j1rNww=="), unsignedBody) // of "hello world"
	if err == nil && !refused {
		return t.unsafe("a body that matches neither the signed SHA-256 nor its Content-MD5 is accepted")
	}
	return err
}

// refuses tells whether the server finds that a body isn't the one of a checksum. An error tells nothing.
func (t *selfTest) refuses(ctx context.Context, contentMD5 *string, sign func(*s3.Options)) (bool, error) {
	key := t.prefix + "damaged"
	call, cancel := context.WithTimeout(ctx, callTime)
	defer cancel()
	_, err := t.single.PutObject(call, &s3.PutObjectInput{
		Bucket: &t.bucket, Key: &key, Body: strings.NewReader("damaged"), ContentMD5: contentMD5,
		ServerSideEncryption: t.encrypt.sse, SSEKMSKeyId: t.encrypt.key,
	}, sign)
	if err == nil {
		return false, nil
	}
	if isStatus(err, http.StatusBadRequest) || isStatus(err, http.StatusForbidden) { // XAmzContentSHA256Mismatch, BadDigest; some say 403
		return true, nil
	}
	return false, t.wrap(call, "put", key, err)
}
