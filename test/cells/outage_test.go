package cells

import (
	"fmt"
	"net/http"
	"os"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/holdfast-jobs/holdfast/runtime/job"
)

// full says that the machine is there for these tests alone: they submit as many jobs as the
// documentation says.
func full() bool { return os.Getenv("HOLDFAST_TEST_CELLS") == "full" }

// A phase of the outage of a cell.
type phase int32

const (
	before phase = iota
	down
	starting
	after
)

func (p phase) String() string { return []string{"before", "down", "starting", "after"}[p] }

// submitted is what became of a key.
type submitted struct {
	id    job.ID
	phase phase
	// took is of the first request alone.
	took time.Duration
	// failed are the statuses of the requests that were not answered 202, and whileDown those
	// among them that were asked and answered while the cell was down.
	failed, whileDown []int
}

// load submits a job for each key through a proxy, and repeats what fails until it is
// accepted.
type load struct {
	t       *testing.T
	address string
	phase   atomic.Int32
	begun   atomic.Int64
	of      int64
	// third and half are closed when so many of the keys were begun.
	third, half chan struct{}
	// back is closed when the cell has come back. The last third of the keys waits for that.
	back chan struct{}

	mu    sync.Mutex
	keys  map[string]*submitted
	again chan string
	open  sync.WaitGroup // keys that are not accepted yet
}

func newLoad(t *testing.T, address string, keys int64) *load {
	t.Helper()
	return &load{
		t: t, address: address, of: keys, keys: make(map[string]*submitted), again: make(chan string, keys),
		third: make(chan struct{}), half: make(chan struct{}), back: make(chan struct{}),
	}
}

// run ends when all keys are accepted.
func (l *load) run(clients int) {
	var all sync.WaitGroup
	l.open.Add(int(l.of))
	for range clients {
		all.Go(func() {
			for {
				n := l.begun.Add(1)
				switch {
				case n > l.of:
					return
				case n > 2*l.of/3:
					<-l.back
				case n == l.of/3:
					close(l.third)
				case n == l.of/2:
					close(l.half)
				}
				l.submit(fmt.Sprintf("key-%d", n))
			}
		})
		all.Go(func() {
			for key := range l.again {
				time.Sleep(glance) // as a client does before it repeats
				l.submit(key)
			}
		})
	}
	l.open.Wait()
	close(l.again)
	all.Wait()
}

// submit sends the request for a key once.
func (l *load) submit(key string) {
	at, began := phase(l.phase.Load()), time.Now()
	got, err := call(l.t.Context(), http.MethodPost, "http://"+l.address+"/jobs", echo, "Idempotency-Key", key)
	took := time.Since(began)
	l.mu.Lock()
	defer l.mu.Unlock()
	s := l.keys[key]
	if s == nil {
		s = &submitted{phase: at, took: took}
		l.keys[key] = s
	}
	switch {
	case !assert.NoError(l.t, err, "the proxy answers whatever happens to cells"):
		l.open.Done()
	case got.status == http.StatusAccepted:
		s.id = got.id(l.t)
		l.open.Done()
	default:
		s.failed = append(s.failed, got.status)
		if at == down && phase(l.phase.Load()) == down {
			s.whileDown = append(s.whileDown, got.status)
		}
		l.again <- key
	}
}

func TestAKeyMakesOneJobWhileACellIsDownAndTheOtherCellNoticesNothing(t *testing.T) {
	for name := range proxies {
		t.Run(name, func(t *testing.T) {
			keys, clients := int64(600), 4
			if full() {
				keys, clients = 20_000, 8
			}
			cells := start(t)
			l := newLoad(t, behind(t, name, addresses(cells)), keys)
			var running sync.WaitGroup
			running.Go(func() { l.run(clients) })

			<-l.third
			l.phase.Store(int32(down))
			require.NoError(t, cells[1].Kill())
			<-l.half
			l.phase.Store(int32(starting))
			_, err := cells[1].Start(t.Context())
			l.phase.Store(int32(after))
			close(l.back)
			require.NoError(t, err)
			running.Wait()

			l.judge(cells, downAnswers[name])
			l.repeat(clients)
			count := 0
			for _, c := range cells {
				count += len(c.jobs(t))
			}
			require.EqualValues(t, keys, count, "repeated requests make no job")
		})
	}
}

// downAnswers are what a proxy answers for a cell that is down. HAProxy says by 502 that a
// connection broke, and by 503 that there is none. A cell that starts answers 503 itself.
var downAnswers = map[string][]int{
	"nginx":   {http.StatusBadGateway},
	"HAProxy": {http.StatusBadGateway, http.StatusServiceUnavailable},
}

// notWorse bounds how long the other cell takes while one is down, by how long it took before.
// Waiting for the cell that is down, as for a connection to it, would take far longer.
func notWorse(took time.Duration) time.Duration { return 3*took + 20*time.Millisecond }

// judge compares what clients were told with the databases. Only the full test judges times:
// the short one has too few, and shares its machine.
func (l *load) judge(cells []*cell, downAnswers []int) {
	t := l.t
	t.Helper()
	found := make([]map[string]job.ID, len(cells))
	jobs := 0
	for i, c := range cells {
		found[i] = c.jobs(t)
		jobs += len(found[i])
	}
	require.EqualValues(t, l.of, jobs, "one job for each key, over both databases")
	statuses, answeredWhileDown := make(map[int]int), 0
	times := make(map[phase][]time.Duration)
	for key, s := range l.keys {
		number, stamped := s.id.Cell().Number()
		require.True(t, stamped, s.id)
		require.Equal(t, s.id, found[number][key])
		if number == 0 {
			require.Empty(t, s.failed, "the cell that was not killed always answered")
			times[s.phase] = append(times[s.phase], s.took)
		}
		for _, status := range s.failed {
			require.Contains(t, []int{http.StatusBadGateway, http.StatusServiceUnavailable}, status)
			statuses[status]++
		}
		require.Subset(t, downAnswers, s.whileDown)
		answeredWhileDown += len(s.whileDown)
	}
	for i, some := range found {
		require.Greater(t, len(some), int(l.of)/4, "cell %d has its share", i)
	}
	require.NotZero(t, answeredWhileDown)
	t.Logf("%d jobs in cell 0, %d in cell 1, which was killed; answers that were repeated: %v", len(found[0]), len(found[1]), statuses)
	for _, p := range []phase{before, down, starting, after} {
		slices.Sort(times[p])
		n := len(times[p])
		require.NotZero(t, n, p)
		t.Logf("cell 0 while cell 1 is %-8s %5d submissions, median %s, p99 %s", p.String()+":", n, times[p][n/2], times[p][n*99/100])
	}
	if full() {
		p99 := func(p phase) time.Duration { return times[p][len(times[p])*99/100] }
		require.LessOrEqual(t, p99(down), notWorse(p99(before)), "the other cell notices nothing: its p99 while one is down, and the bound by that before")
	}
}

// repeat sends the request of every key once more.
func (l *load) repeat(clients int) {
	t := l.t
	t.Helper()
	keys := make(chan string, len(l.keys))
	for key := range l.keys {
		keys <- key
	}
	close(keys)
	var all sync.WaitGroup
	for range clients {
		all.Go(func() {
			for key := range keys {
				got, err := call(t.Context(), http.MethodPost, "http://"+l.address+"/jobs", echo, "Idempotency-Key", key)
				if assert.NoError(t, err) && assert.Equal(t, http.StatusAccepted, got.status, string(got.body)) {
					assert.Equal(t, l.keys[key].id, got.id(t))
				}
			}
		})
	}
	all.Wait()
}
