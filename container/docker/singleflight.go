package docker

import (
	"context"
	"sync"
)

// singleFlight lets callers that want the same thing share the work. The work goes on
// as long as one of them waits for it, also when the caller that began it has left.
type singleFlight[K comparable, V any] struct {
	mu  sync.Mutex
	now map[K]*flight[V]
	wg  sync.WaitGroup
}

// wait returns when no work is running. Nobody may call do any more.
func (g *singleFlight[K, V]) wait() { g.wg.Wait() }

type flight[V any] struct {
	cancel  context.CancelFunc
	waiting int
	done    chan struct{}
	value   V
	err     error

	mu     sync.Mutex
	listen []func(string)
}

// say tells every caller that asked for news.
func (f *flight[V]) say(s string) {
	f.mu.Lock()
	defer f.mu.Unlock()
	for _, fn := range f.listen {
		fn(s)
	}
}

// do returns what fn returned, for this caller or another one that is waiting
// already. news may be nil.
func (g *singleFlight[K, V]) do(ctx context.Context, key K, news func(string), fn func(ctx context.Context, say func(string)) (V, error)) (V, error) {
	f := g.join(ctx, key, news, fn)
	select {
	case <-f.done:
		g.leave(key, f)
		return f.value, f.err
	case <-ctx.Done():
		g.leave(key, f)
		var zero V
		return zero, context.Cause(ctx)
	}
}

func (g *singleFlight[K, V]) join(ctx context.Context, key K, news func(string), fn func(context.Context, func(string)) (V, error)) *flight[V] {
	g.mu.Lock()
	defer g.mu.Unlock()
	f, ok := g.now[key]
	if !ok {
		work, cancel := context.WithCancel(context.WithoutCancel(ctx))
		f = &flight[V]{cancel: cancel, done: make(chan struct{})}
		if g.now == nil {
			g.now = map[K]*flight[V]{}
		}
		g.now[key] = f
		g.wg.Go(func() {
			defer close(f.done)
			f.value, f.err = fn(work, f.say)
			g.forget(key, f)
		})
	}
	f.waiting++
	if news != nil {
		f.mu.Lock()
		f.listen = append(f.listen, news)
		f.mu.Unlock()
	}
	return f
}

// leave ends the work when nobody waits for it any more; the next caller starts anew.
func (g *singleFlight[K, V]) leave(key K, f *flight[V]) {
	g.mu.Lock()
	f.waiting--
	last := f.waiting == 0
	if last && g.now[key] == f {
		delete(g.now, key)
	}
	g.mu.Unlock()
	if last {
		f.cancel()
	}
}

func (g *singleFlight[K, V]) forget(key K, f *flight[V]) {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.now[key] == f {
		delete(g.now, key)
	}
}
