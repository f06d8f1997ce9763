package s3store

import (
	"context"
	"errors"
	"fmt"
	"io"
	"iter"
	"net/http"
	"strings"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/s3"
	"github.com/aws/aws-sdk-go-v2/service/s3/types"

	wsync "slipway/sync"
)

const (
	// callTime and bytesPerSecond bound one call: a fixed part and one that grows with the body.
	callTime       = 30 * time.Second
	bytesPerSecond = 1 << 20
	// responseTime is how long a server may think after it got the whole request.
	responseTime = 60 * time.Second
	// deleteBatch is the protocol's limit for one request.
	deleteBatch = 1000
)

var _ wsync.Store = (*Store)(nil)

// deadline gives a call that moves size bytes its time.
func deadline(ctx context.Context, size int64) (context.Context, context.CancelFunc) {
	return context.WithTimeout(ctx, callTime+time.Duration(size/bytesPerSecond)*time.Second)
}

// Get implements wsync.Store.
func (s *Store) Get(ctx context.Context, key string) (*wsync.Object, error) {
	return s.get(ctx, key, "")
}

// GetRange implements wsync.Store.
func (s *Store) GetRange(ctx context.Context, key string, off, length int64) (*wsync.Object, error) {
	if length <= 0 {
		return nil, fmt.Errorf("get a range of s3://%s/%s: length %d", s.bucket, key, length)
	}
	obj, err := s.get(ctx, key, fmt.Sprintf("bytes=%d-%d", off, off+length-1))
	if err != nil && isStatus(err, http.StatusRequestedRangeNotSatisfiable) {
		// The object ends before off.
		return &wsync.Object{ObjectInfo: wsync.ObjectInfo{Key: key}, Body: io.NopCloser(strings.NewReader(""))}, nil
	}
	return obj, err
}

func (s *Store) get(ctx context.Context, key, byteRange string) (*wsync.Object, error) {
	in := &s3.GetObjectInput{Bucket: &s.bucket, Key: &key}
	if byteRange != "" {
		in.Range = &byteRange
	}
	// The deadline covers the answer; how long the body may take is known only then.
	ctx, cancel := context.WithCancelCause(ctx)
	timer := time.AfterFunc(callTime, func() { cancel(errSlow) })
	out, err := s.bulk.GetObject(ctx, in)
	if err != nil {
		timer.Stop()
		err = s.wrap(ctx, "get", key, err)
		cancel(nil)
		return nil, err
	}
	size := aws.ToInt64(out.ContentLength)
	timer.Reset(callTime + time.Duration(size/bytesPerSecond)*time.Second)
	return &wsync.Object{
		ObjectInfo: wsync.ObjectInfo{Key: key, ETag: aws.ToString(out.ETag), Size: size, Modified: aws.ToTime(out.LastModified)},
		Metadata:   out.Metadata,
		Body:       &body{ReadCloser: out.Body, stop: func() { timer.Stop(); cancel(nil) }},
	}, nil
}

var errSlow = fmt.Errorf("the answer took too long: %w", context.DeadlineExceeded)

// body ends the context of a get when it is closed.
type body struct {
	io.ReadCloser
	stop func()
}

// Close implements io.Closer.
func (b *body) Close() error {
	err := b.ReadCloser.Close()
	b.stop()
	return err
}

// Put implements wsync.Store.
func (s *Store) Put(ctx context.Context, key string, content io.ReadSeeker, size int64, opts wsync.PutOptions) (string, error) {
	contentMD5, sign, err := s.seal(content, opts.SHA256)
	if err != nil {
		return "", fmt.Errorf("put s3://%s/%s: %w", s.bucket, key, err)
	}
	in := &s3.PutObjectInput{
		Bucket: &s.bucket, Key: &key, Body: content, ContentLength: &size, Metadata: opts.Metadata, ContentMD5: contentMD5,
		ServerSideEncryption: s.encrypt.sse, SSEKMSKeyId: s.encrypt.key,
	}
	client := s.bulk
	if opts.IfMatch != "" {
		client, in.IfMatch = s.single, &opts.IfMatch
	}
	if opts.IfNoneMatch {
		client, in.IfNoneMatch = s.single, aws.String("*")
	}
	call, cancel := deadline(ctx, size)
	defer cancel()
	out, err := client.PutObject(call, in, sign)
	if err == nil {
		return aws.ToString(out.ETag), nil
	}
	err = s.wrap(call, "put", key, err)
	if opts.IfMatch != "" && errors.Is(err, wsync.ErrNotFound) {
		err = fmt.Errorf("%w: %w", wsync.ErrPrecondition, err)
	}
	return "", err
}

// Delete implements wsync.Store.
func (s *Store) Delete(ctx context.Context, keys ...string) error {
	var errs []error
	for len(keys) > 0 {
		batch := keys[:min(len(keys), deleteBatch)]
		keys = keys[len(batch):]
		errs = append(errs, s.deleteBatch(ctx, batch))
	}
	return errors.Join(errs...)
}

// deleteBatch reads the answer: it is 200 even if nothing could be deleted.
func (s *Store) deleteBatch(ctx context.Context, keys []string) error {
	ids := make([]types.ObjectIdentifier, len(keys))
	for i := range keys {
		ids[i] = types.ObjectIdentifier{Key: &keys[i]}
	}
	call, cancel := deadline(ctx, 0)
	defer cancel()
	out, err := s.bulk.DeleteObjects(call, &s3.DeleteObjectsInput{
		Bucket: &s.bucket, Delete: &types.Delete{Objects: ids, Quiet: aws.Bool(true)},
	})
	if err != nil {
		return s.wrap(call, "delete objects of", "", err)
	}
	var errs []error
	for _, e := range out.Errors {
		if code := aws.ToString(e.Code); code != "NoSuchKey" {
			errs = append(errs, fmt.Errorf("delete s3://%s/%s: %s: %s", s.bucket, aws.ToString(e.Key), code, aws.ToString(e.Message)))
		}
	}
	return errors.Join(errs...)
}

// List implements wsync.Store.
func (s *Store) List(ctx context.Context, prefix string) iter.Seq2[wsync.ObjectInfo, error] {
	return func(yield func(wsync.ObjectInfo, error) bool) {
		pages := s3.NewListObjectsV2Paginator(s.bulk, &s3.ListObjectsV2Input{Bucket: &s.bucket, Prefix: &prefix})
		for pages.HasMorePages() {
			page, err := s.page(ctx, pages)
			if err != nil {
				yield(wsync.ObjectInfo{}, s.wrap(ctx, "list", prefix, err))
				return
			}
			for _, o := range page.Contents {
				info := wsync.ObjectInfo{
					Key: aws.ToString(o.Key), ETag: aws.ToString(o.ETag), Size: aws.ToInt64(o.Size), Modified: aws.ToTime(o.LastModified),
				}
				if !yield(info, nil) {
					return
				}
			}
		}
	}
}

func (s *Store) page(ctx context.Context, pages *s3.ListObjectsV2Paginator) (*s3.ListObjectsV2Output, error) {
	call, cancel := deadline(ctx, 0)
	defer cancel()
	return pages.NextPage(call)
}
