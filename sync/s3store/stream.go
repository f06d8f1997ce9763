package s3store

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"sync"
	"sync/atomic"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/s3"
	"github.com/aws/aws-sdk-go-v2/service/s3/types"

	wsync "slipway/sync"
)

const (
	// partSize is what a stream is cut into. A stream can't be rewound for another try, so a
	// part lies in memory until it is stored; what fits into one part is put in one piece.
	partSize = 16 << 20
	// partsInFlight bounds the memory of one stream.
	partsInFlight = 2
	// maxParts is the protocol's limit; the parts of larger streams are larger.
	maxParts = 10_000
	// abortTime is what giving up an upload may take, after the caller's context ended.
	abortTime = 15 * time.Second
)

// PutStream implements wsync.Store.
func (s *Store) PutStream(ctx context.Context, key string, body io.Reader, size int64) error {
	part := max(partSize, size/maxParts+1)
	first, err := readPart(body, part)
	if err != nil && !errors.Is(err, io.EOF) {
		return fmt.Errorf("put s3://%s/%s: read the body: %w", s.bucket, key, err)
	}
	if err != nil {
		_, err = s.Put(ctx, key, bytes.NewReader(first), int64(len(first)), wsync.PutOptions{})
		return err
	}
	return s.multipart(ctx, key, first, body, part)
}

// readPart reads up to n bytes; io.EOF comes with the last ones.
func readPart(r io.Reader, n int64) ([]byte, error) {
	buf := make([]byte, n)
	got, err := io.ReadFull(r, buf)
	if errors.Is(err, io.ErrUnexpectedEOF) {
		err = io.EOF
	}
	return buf[:got], err
}

// multipart stores a stream in parts, and leaves none behind if it fails.
func (s *Store) multipart(ctx context.Context, key string, first []byte, body io.Reader, part int64) (err error) {
	call, cancel := deadline(ctx, 0)
	defer cancel()
	created, err := s.bulk.CreateMultipartUpload(call, &s3.CreateMultipartUploadInput{
		Bucket: &s.bucket, Key: &key, ServerSideEncryption: s.encrypt.sse, SSEKMSKeyId: s.encrypt.key,
	})
	if err != nil {
		return s.wrap(call, "put in parts", key, err)
	}
	up := &upload{store: s, key: key, id: aws.ToString(created.UploadId), slots: make(chan struct{}, partsInFlight)}
	defer func() {
		if err != nil {
			err = errors.Join(err, up.abort(ctx))
		}
	}()
	if err := up.send(ctx, first, body, part); err != nil {
		return err
	}
	end, cancelEnd := deadline(ctx, int64(len(up.parts))*part)
	defer cancelEnd()
	_, err = s.bulk.CompleteMultipartUpload(end, &s3.CompleteMultipartUploadInput{
		Bucket: &s.bucket, Key: &key, UploadId: &up.id, MultipartUpload: &types.CompletedMultipartUpload{Parts: up.parts},
	})
	if isStatus(err, http.StatusNotFound) {
		return s.completed(end, key, up, err)
	}
	return s.wrap(end, "complete the parts of", key, err)
}

// completed settles a completion whose repeat finds no upload: an earlier try may have done it, and only its
// answer was lost. Who streams an object uses a key that nothing else is written to, so that the size is proof.
func (s *Store) completed(ctx context.Context, key string, up *upload, err error) error {
	head, headErr := s.bulk.HeadObject(ctx, &s3.HeadObjectInput{Bucket: &s.bucket, Key: &key})
	if headErr == nil && aws.ToInt64(head.ContentLength) == up.sent.Load() {
		return nil
	}
	return fmt.Errorf("complete the parts of s3://%s/%s: %w: the upload is gone: %w", s.bucket, key, wsync.ErrUnavailable, err)
}

// upload is one multipart upload.
type upload struct {
	store *Store
	key   string
	id    string
	slots chan struct{}
	mu    sync.Mutex
	parts []types.CompletedPart
	sent  atomic.Int64 // bytes of all parts
}

func (u *upload) send(ctx context.Context, part []byte, body io.Reader, size int64) error {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	var wg sync.WaitGroup
	defer wg.Wait()
	var readErr error
	for n := int32(1); len(part) > 0; n++ {
		select {
		case u.slots <- struct{}{}:
		case <-ctx.Done():
			return context.Cause(ctx)
		}
		u.mu.Lock()
		u.parts = append(u.parts, types.CompletedPart{PartNumber: aws.Int32(n)})
		u.mu.Unlock()
		data := part
		wg.Go(func() {
			defer func() { <-u.slots }()
			if err := u.sendPart(ctx, n, data); err != nil {
				cancel(err)
			}
		})
		if errors.Is(readErr, io.EOF) {
			break
		}
		if part, readErr = readPart(body, size); readErr != nil && !errors.Is(readErr, io.EOF) {
			cancel(nil)
			return fmt.Errorf("put s3://%s/%s: read the body: %w", u.store.bucket, u.key, readErr)
		}
	}
	wg.Wait()
	return context.Cause(ctx)
}

func (u *upload) sendPart(ctx context.Context, n int32, data []byte) error {
	body := bytes.NewReader(data)
	contentMD5, sign, err := u.store.seal(body, [32]byte{})
	if err != nil {
		return err
	}
	call, cancel := deadline(ctx, int64(len(data)))
	defer cancel()
	out, err := u.store.bulk.UploadPart(call, &s3.UploadPartInput{
		Bucket: &u.store.bucket, Key: &u.key, UploadId: &u.id, PartNumber: &n,
		Body: body, ContentLength: aws.Int64(int64(len(data))), ContentMD5: contentMD5,
	}, sign)
	if err != nil {
		return u.store.wrap(call, fmt.Sprintf("put part %d of", n), u.key, err)
	}
	u.mu.Lock()
	u.parts[n-1].ETag = out.ETag
	u.sent.Add(int64(len(data)))
	u.mu.Unlock()
	return nil
}

// abort removes the parts. The context may be what ended the upload.
func (u *upload) abort(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), abortTime)
	defer cancel()
	_, err := u.store.bulk.AbortMultipartUpload(ctx, &s3.AbortMultipartUploadInput{Bucket: &u.store.bucket, Key: &u.key, UploadId: &u.id})
	if err != nil && !isStatus(err, 404) {
		return u.store.wrap(ctx, "give up the parts of", u.key, err)
	}
	return nil
}
