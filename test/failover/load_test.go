package failover

import (
	"context"
	"fmt"
	"math/rand/v2"
	"strconv"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/holdfast-jobs/holdfast/test/rig"
)

// clients is how many clients submit at the same time.
const clients = 8

// load records the submissions of the clients and the answers. They repeat a failed request
// with the same keys until it is accepted.
type load struct {
	servers []*rig.Orchestrator
	// asked counts requests that were answered, even with an error.
	asked atomic.Int64
	stop  context.CancelFunc
	all   sync.WaitGroup

	mu       sync.Mutex
	accepted map[string]acceptance // by key
	twice    []string              // keys for which two ids were returned
}

// acceptance is the first answer that accepted a job.
type acceptance struct {
	id string
	at time.Time
}

func newLoad(t *testing.T, servers []*rig.Orchestrator) (*load, context.Context) {
	t.Helper()
	ctx, stop := context.WithCancel(t.Context())
	l := &load{servers: servers, stop: stop, accepted: make(map[string]acceptance)}
	t.Cleanup(l.end)
	return l, ctx
}

// startLoad starts clients of which each sends one request after the other.
func startLoad(t *testing.T, servers ...*rig.Orchestrator) *load {
	t.Helper()
	l, ctx := newLoad(t, servers)
	for client := range clients {
		l.all.Go(func() {
			for n := 0; ctx.Err() == nil; n++ {
				l.submit(ctx, client, n)
			}
		})
	}
	return l
}

const (
	// waiting is how many submissions of a steady load may be without an answer. No more are made
	// until then.
	waiting = 4000
	// A client of a steady load repeats a request after firstRepeat, then after twice as long
	// each time, up to lastRepeat.
	firstRepeat, lastRepeat = 50 * time.Millisecond, time.Second
)

// startSteadyLoad makes so many submissions a second, whatever becomes of those before.
func startSteadyLoad(t *testing.T, rate int, servers ...*rig.Orchestrator) *load {
	t.Helper()
	l, ctx := newLoad(t, servers)
	room := make(chan struct{}, waiting)
	l.all.Go(func() {
		tick := time.NewTicker(time.Second / time.Duration(rate))
		defer tick.Stop()
		for n := 0; ctx.Err() == nil; n++ {
			select {
			case <-tick.C:
			case <-ctx.Done():
				return
			}
			room <- struct{}{}
			l.all.Go(func() {
				defer func() { <-room }()
				l.submitPatiently(ctx, n)
			})
		}
	})
	return l
}

// submitPatiently submits one job, to one server after the other, until it is accepted.
func (l *load) submitPatiently(ctx context.Context, n int) {
	millis := []int{1, 5, 20, 50}[n%4]
	if n%100 == 0 {
		millis = 1500 // it is likely to run while the primary ends
	}
	batch := []rig.Submission{{JobType: "STEP", IdempotencyKey: strconv.Itoa(n), MaxAttempts: 20, Payload: map[string]any{"millis": millis}}}
	pause := firstRepeat
	for try := n; ctx.Err() == nil; try++ {
		ids, err := send(ctx, l.servers[try%len(l.servers)], batch)
		l.asked.Add(1)
		if err == nil {
			l.record(batch, ids)
			return
		}
		select {
		case <-time.After(pause - rand.N(pause/2)):
		case <-ctx.Done():
		}
		pause = min(2*pause, lastRepeat)
	}
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
		before, ok := l.accepted[key]
		if ok && before.id != ids[i] {
			l.twice = append(l.twice, key)
		}
		if !ok || before.id != ids[i] {
			l.accepted[key] = acceptance{id: ids[i], at: time.Now()}
		}
	}
}

func (l *load) acceptedSoFar() int {
	l.mu.Lock()
	defer l.mu.Unlock()
	return len(l.accepted)
}

// firstAccepted is when the first job was accepted after the moment; zero if none was.
func (l *load) firstAccepted(after time.Time) (first time.Time) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, job := range l.accepted {
		if job.at.After(after) && (first.IsZero() || job.at.Before(first)) {
			first = job.at
		}
	}
	return first
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
