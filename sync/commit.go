package wsync

import (
	"bytes"
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"io"
	"time"

	"slipway/internal/pause"
)

const (
	// commitTries is how often a conditional write is sent again after a reply that settles nothing.
	commitTries = 5
	// readBackTime bounds finding out what a write did whose context has ended.
	readBackTime = 20 * time.Second
	// versionTime is the time in a version's name: it sorts, and has no character that a server escapes.
	versionTime = "20060102T150405.000Z"
)

// commit makes next the head. It writes an immutable copy first, then the head itself if that still is base's. A missing
// reply proves nothing, and neither does ErrPrecondition: an earlier try may have won and lost its reply, and the next
// try is then refused because of it. So commit reads the head and believes that alone.
func (p *push) commit(ctx context.Context, next *state) (etag string, err error) {
	data := next.encode()
	if limit := p.syncer.opts.MaxStateBytes; int64(len(data)) > limit {
		return "", fmt.Errorf("%w: the state has %d bytes, Options.MaxStateBytes allows %d", ErrTooLarge, len(data), limit)
	}
	version := p.prefix + "versions/" + next.CreatedAt.Format(versionTime) + "-" + next.Commit + ".json"
	meta := map[string]string{"commit": next.Commit}
	sum := sha256.Sum256(data) // for both, and each try
	if err := p.putVersion(ctx, version, data, PutOptions{IfNoneMatch: true, Metadata: meta, SHA256: sum}); err != nil {
		return "", err
	}
	cond := PutOptions{IfMatch: p.base.etag, IfNoneMatch: p.base.etag == "", Metadata: meta, SHA256: sum}
	for try := range commitTries {
		if !pause.For(ctx, backoff(try)) {
			return "", context.Cause(ctx)
		}
		etag, err = p.syncer.store.Put(ctx, p.prefix+stateName, bytes.NewReader(data), int64(len(data)), cond)
		if err == nil || errors.Is(err, ErrDenied) || errors.Is(err, ErrNoBucket) {
			return etag, err
		}
		var settled bool
		if etag, settled, err = p.readBack(ctx, next, version, err); settled {
			return etag, err
		}
	}
	return "", err
}

// putVersion writes the immutable copy. No other push has its name, so an object of that name is an earlier try's.
func (p *push) putVersion(ctx context.Context, key string, data []byte, create PutOptions) (err error) {
	for try := range commitTries {
		if !pause.For(ctx, backoff(try)) {
			return context.Cause(ctx)
		}
		_, err = p.syncer.store.Put(ctx, key, bytes.NewReader(data), int64(len(data)), create)
		switch {
		case err == nil:
			return nil
		case errors.Is(err, ErrPrecondition):
			return p.sameVersion(ctx, key, data)
		case !errors.Is(err, ErrUnavailable):
			return err
		}
	}
	return err
}

func (p *push) sameVersion(ctx context.Context, key string, data []byte) error {
	obj, err := p.syncer.store.Get(ctx, key)
	if err != nil {
		return fmt.Errorf("read back %s: %w", key, err)
	}
	stored, err := io.ReadAll(io.LimitReader(obj.Body, int64(len(data))+1))
	if err = errors.Join(err, obj.Body.Close()); err != nil {
		return fmt.Errorf("read back %s: %w: %w", key, ErrUnavailable, err)
	}
	if !bytes.Equal(stored, data) {
		return corrupt(key, "another state has this commit's name")
	}
	return nil
}

// readBack finds out whether an unconfirmed write of the head took effect. settled is false if the head still is base's,
// so that the write can be sent again. It has a time of its own: whether the commit won matters also after ctx ended.
func (p *push) readBack(ctx context.Context, next *state, version string, cause error) (etag string, settled bool, err error) {
	ended := ctx.Err() != nil
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), readBackTime)
	defer cancel()
	now, err := p.syncer.readHead(ctx, p.prefix)
	switch {
	case errors.Is(err, ErrNotFound):
		now = head{state: &state{}}
	case err != nil:
		return "", true, fmt.Errorf("write the head: outcome unknown: %w", errors.Join(cause, err))
	case now.state.Commit == next.Commit:
		return now.etag, true, nil
	}
	for _, c := range now.state.Parents {
		if c == next.Commit {
			// Our commit won, and another one followed it. The next push from this base has to lose.
			return overtaken, true, nil
		}
	}
	if now.etag == p.base.etag {
		return "", ended, fmt.Errorf("write the head: %w", cause)
	}
	return "", true, &Conflict{
		Prefix: p.prefix, Base: p.base.Commit, Head: now.state.Commit, HeadWriter: now.state.Writer,
		Commit: next.Commit, Version: version, Reason: "another writer committed since the pull",
	}
}

// overtaken is an ETag that no object has.
const overtaken = `"overtaken"`
