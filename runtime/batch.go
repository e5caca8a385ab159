package runtime

import (
	"context"
	"sync"
)

// batcher groups what is added into batches: while one flush is under way the
// next batch gathers. There is no timer; a lone item is flushed at once, and
// the busier it gets the larger the batches grow.
type batcher[T any] struct {
	flush func([]T)
	most  int
	added signal

	mu      sync.Mutex
	pending []T
}

func newBatcher[T any](most int, flush func([]T)) *batcher[T] {
	return &batcher[T]{flush: flush, most: most, added: newSignal()}
}

func (b *batcher[T]) add(items ...T) {
	b.mu.Lock()
	b.pending = append(b.pending, items...)
	b.mu.Unlock()
	b.added.raise()
}

// run flushes until the context ends, and then what was added before.
func (b *batcher[T]) run(ctx context.Context) {
	for {
		for batch := b.take(); len(batch) > 0; batch = b.take() {
			b.flush(batch)
		}
		select {
		case <-b.added:
		case <-ctx.Done():
			for batch := b.take(); len(batch) > 0; batch = b.take() {
				b.flush(batch)
			}
			return
		}
	}
}

func (b *batcher[T]) take() []T {
	b.mu.Lock()
	defer b.mu.Unlock()
	if len(b.pending) <= b.most {
		batch := b.pending
		b.pending = nil
		return batch
	}
	batch := b.pending[:b.most:b.most]
	b.pending = b.pending[b.most:]
	return batch
}
