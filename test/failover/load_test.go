package failover

import (
	"context"
	"fmt"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/holdfast-jobs/holdfast/test/rig"
)

// clients is how many clients submit at the same time.
const clients = 8

// load records the submissions of the clients and the answers. Each client sends one
// request after the other. It repeats a failed request with the same keys until it is
// accepted.
type load struct {
	servers []*rig.Orchestrator
	// asked counts requests that were answered, even with an error.
	asked atomic.Int64
	stop  context.CancelFunc
	all   sync.WaitGroup

	mu       sync.Mutex
	accepted map[string]string // ids by key
	twice    []string          // keys for which two ids were returned
}

func startLoad(t *testing.T, servers ...*rig.Orchestrator) *load {
	t.Helper()
	ctx, stop := context.WithCancel(t.Context())
	l := &load{servers: servers, stop: stop, accepted: make(map[string]string)}
	for client := range clients {
		l.all.Go(func() {
			for n := 0; ctx.Err() == nil; n++ {
				l.submit(ctx, client, n)
			}
		})
	}
	t.Cleanup(l.end)
	return l
}

// end stops the clients and returns when no request is in progress.
func (l *load) end() {
	l.stop()
	l.all.Wait()
}

// submit submits one job or, in every third request, a batch.
func (l *load) submit(ctx context.Context, client, n int) {
	var batch []rig.Submission
	for i := range 1 + n%3/2*4 {
		batch = append(batch, rig.Submission{
			JobType: "STEP", IdempotencyKey: fmt.Sprintf("%d-%d-%d", client, n, i), MaxAttempts: 20,
			Payload: map[string]any{"millis": []int{5, 50, 1500}[(n+i)%3]},
		})
	}
	for try := 0; ctx.Err() == nil; try++ {
		ids, err := send(ctx, l.servers[(client+try)%len(l.servers)], batch)
		l.asked.Add(1)
		if err != nil {
			continue
		}
		l.record(batch, ids)
		// A client that did not get an answer repeats the request and gets the same ids.
		if try == 0 && n%5 != 0 {
			return
		}
		if ids, err = send(ctx, l.servers[client%len(l.servers)], batch); err == nil {
			l.record(batch, ids)
		}
		return
	}
}

func send(ctx context.Context, to *rig.Orchestrator, batch []rig.Submission) ([]string, error) {
	if len(batch) == 1 {
		id, err := to.Submit(ctx, batch[0])
		return []string{id}, err
	}
	return to.SubmitBatch(ctx, batch)
}

func (l *load) record(batch []rig.Submission, ids []string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for i, submission := range batch {
		key := submission.IdempotencyKey
		if before, ok := l.accepted[key]; ok && before != ids[i] {
			l.twice = append(l.twice, key)
		}
		l.accepted[key] = ids[i]
	}
}

func (l *load) acceptedSoFar() int {
	l.mu.Lock()
	defer l.mu.Unlock()
	return len(l.accepted)
}

// awaitAccepted waits until so many further jobs are accepted.
func (l *load) awaitAccepted(t *testing.T, more int) {
	t.Helper()
	from := l.acceptedSoFar()
	require.Eventually(t, func() bool { return l.acceptedSoFar() >= from+more }, patience, glance, "jobs are accepted")
}

// awaitAsked waits until so many further requests are answered.
func (l *load) awaitAsked(t *testing.T, more int64) {
	t.Helper()
	from := l.asked.Load()
	require.Eventually(t, func() bool { return l.asked.Load() >= from+more }, patience, glance, "requests are answered")
}
