// Package flushes lets tests of batches see each flush, and decide when the first ends.
package flushes

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// patience bounds the wait for a flush.
const patience = 2 * time.Minute

// Flushes hands out the size of every batch, and holds the first until First is closed.
type Flushes struct {
	// First is closed by the test, once.
	First chan struct{}
	sizes chan int
}

// New returns Flushes without a batch.
func New() *Flushes { return &Flushes{sizes: make(chan int, 1000), First: make(chan struct{})} }

// Of records a batch of n items, and returns when First is closed. Whoever flushes calls
// it.
func (f *Flushes) Of(n int) {
	f.sizes <- n
	<-f.First
}

// Next waits for the next batch, and returns its size.
func (f *Flushes) Next(t *testing.T) int {
	t.Helper()
	select {
	case n := <-f.sizes:
		return n
	case <-time.After(patience):
		require.FailNow(t, "nothing is flushed")
		return 0
	}
}

// None requires that no batch waits for Next.
func (f *Flushes) None(t *testing.T) {
	t.Helper()
	require.Empty(t, f.sizes)
}
