package runtime

import (
	"context"
	"slices"
	"sync"
)

// batcher groups what is added into batches: while one flush is under way the
// next batch gathers. There is no timer; a lone item is flushed at once, and
// the busier it gets the larger the batches grow.
type batcher[T any] struct {
	flush func([]T)
	most  int
	added signal
	turn  chan struct{} // held by whoever flushes

	mu      sync.Mutex
	pending []T
}

func newBatcher[T any](most int, flush func([]T)) *batcher[T] {
	return &batcher[T]{flush: flush, most: most, added: newSignal(), turn: make(chan struct{}, 1)}
}

// add leaves the items to run.
func (b *batcher[T]) add(items ...T) {
	b.put(items)
	b.added.raise()
}

// join adds the item and, when no flush is under way, flushes on the caller's
// own goroutine: a lone caller that waits for the outcome is spared two
// changes of goroutine, a tenth of what a submission takes.
func (b *batcher[T]) join(item T) {
	b.put([]T{item})
	select {
	case b.turn <- struct{}{}:
		defer b.yield() // also when the caller survives a panic of its flush
		if batch := b.take(); len(batch) > 0 {
			b.flush(batch)
		}
	default: // whoever flushes looks again when done
	}
}

// run flushes until the context ends, and then what was added before.
func (b *batcher[T]) run(ctx context.Context) {
	for {
		b.turn <- struct{}{}
		for batch := b.take(); len(batch) > 0; batch = b.take() {
			b.flush(batch)
		}
		b.yield()
		select {
		case <-b.added:
		case <-ctx.Done():
			b.turn <- struct{}{}
			for batch := b.take(); len(batch) > 0; batch = b.take() {
				b.flush(batch)
			}
			<-b.turn
			return
		}
	}
}

// yield ends a turn. What was added in the meantime is left to run: who added
// it may have found the turn taken.
func (b *batcher[T]) yield() {
	<-b.turn
	b.mu.Lock()
	defer b.mu.Unlock()
	if len(b.pending) > 0 {
		b.added.raise()
	}
}

func (b *batcher[T]) put(items []T) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.pending = append(b.pending, items...)
}

// withdraw takes back what was added and matches, and reports whether there was
// any. What a flush has taken stays with it.
func (b *batcher[T]) withdraw(matches func(T) bool) bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	before := len(b.pending)
	b.pending = slices.DeleteFunc(b.pending, matches)
	return len(b.pending) < before
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
