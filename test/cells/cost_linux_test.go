package cells

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"math"
	"math/rand/v2"
	"net/http"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"

	"github.com/holdfast-jobs/holdfast/runtime/job"
	"github.com/holdfast-jobs/holdfast/test/rig"
	"github.com/holdfast-jobs/holdfast/test/rig/rigtest"
)

// The load of each cell in each turn: so many batches, by so many clients.
const (
	costBatch   = 1000
	costBatches = 8
	costClients = 4
)

const (
	// Each way gets its turn at least and at most so often. Both are even, so that each cell is as
	// often alone.
	leastRounds = 60
	mostRounds  = 200
	// most is what a job may cost behind a proxy, as a multiple of what it costs without one.
	most = 1.1
	// sureness is how many standard errors the mean has to be away from that: the true one is within
	// them in 99 cases of 100, or in a few less, because the result is looked at again and again.
	sureness = 2.6
	// mostProcessors is how many a unix.CPUSet has room for.
	mostProcessors = 1024
)

// way is how jobs come to some of the cells.
type way struct {
	name      string
	cells     []*cell
	addresses []string // a client takes one of them
	proxy     int      // its process; 0 for none
}

// cost is the processor time of a job.
type cost struct{ cells, proxy time.Duration }

func (c cost) total() time.Duration { return c.cells + c.proxy }

// ratio is the geometric mean of n ratios.
type ratio struct {
	n             int
	sum, ofSquare float64 // of their logarithms
}

func (r *ratio) add(of, to cost) {
	l := math.Log(float64(of.total()) / float64(to.total()))
	r.n, r.sum, r.ofSquare = r.n+1, r.sum+l, r.ofSquare+l*l
}

// bounds returns the mean, and those of the true one.
func (r *ratio) bounds() (mean, low, high float64) {
	n := float64(r.n)
	l := r.sum / n
	deviation := math.Sqrt((r.ofSquare - n*l*l) / (n - 1))
	off := sureness * deviation / math.Sqrt(n)
	return math.Exp(l), math.Exp(l - off), math.Exp(l + off)
}

func (r *ratio) String() string {
	mean, low, high := r.bounds()
	return fmt.Sprintf("%.3f times (%.3f to %.3f)", mean, low, high)
}

// sure returns whether it is known on which side of a limit the true mean is.
func (r *ratio) sure(limit float64) bool {
	_, low, high := r.bounds()
	return high <= limit || low > limit
}

// In earnest, cells do not share machines. Here each has a processor for its PostgreSQL and its
// orchestrator, and gets the load of one cell. What two cost behind a proxy is compared with what
// the same two cost without one, because a busy cell makes the other one dearer even so: they share
// the memory and caches of the machine. What a cell costs while the other one rests is measured
// as well.
//
// Ways take short turns, in a random order in each round, and turns of one round are compared, because
// the speed of a machine changes within minutes. There are rounds until the result is sure.
func TestAProxyMakesCellsLittleDearer(t *testing.T) {
	if !full() {
		t.Skip("it needs the machine for itself: make cells")
	}
	both := []*cell{startOn(t, 0), startOn(t, 1)}
	alone := func(i int) way {
		return way{"one cell while the other rests", both[i : i+1], addresses(both[i : i+1]), 0}
	}
	ways := []way{{"two cells without a proxy", both, addresses(both), 0}, alone(0)}
	for _, proxy := range slices.Sorted(maps.Keys(proxies)) {
		address, pid := startProxy(t, proxy, addresses(both))
		ways = append(ways, way{"two cells behind " + proxy, both, []string{address}, pid})
	}
	for _, w := range ways {
		w.turn(t) // so that everything is warm
	}
	costs := make([][]cost, len(ways)) // of each round
	ratios := make([]ratio, len(ways)) // to two cells without a proxy
	behind := ratios[2:]
	for round := range mostRounds {
		ways[1] = alone(round % 2)
		for _, i := range rand.Perm(len(ways)) {
			costs[i] = append(costs[i], ways[i].turn(t))
		}
		for i := range ways {
			ratios[i].add(costs[i][round], costs[0][round])
		}
		unsure := slices.ContainsFunc(behind, func(r ratio) bool { return !r.sure(most) })
		if rounds := round + 1; rounds >= leastRounds && rounds%2 == 0 && !unsure {
			break
		}
	}
	for i, w := range ways {
		slices.SortFunc(costs[i], func(a, b cost) int { return int(a.total() - b.total()) })
		median := costs[i][len(costs[i])/2]
		t.Logf("%s: %s a job, of them in the proxy %s; %s those of two without one; %d rounds", w.name, median.total(), median.proxy, &ratios[i], ratios[i].n)
	}
	for i, r := range behind {
		_, _, high := r.bounds()
		assert.LessOrEqual(t, high, most, ways[i+2].name)
	}
}

// startOn starts a cell with a PostgreSQL of its own, all on the processor with that number among
// those that this process may use.
func startOn(t *testing.T, number int) *cell {
	t.Helper()
	// A process inherits the processors of the thread that starts it.
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	var all, one unix.CPUSet
	require.NoError(t, unix.SchedGetaffinity(0, &all))
	var usable []int
	for processor := range mostProcessors {
		if all.IsSet(processor) {
			usable = append(usable, processor)
		}
	}
	require.Greater(t, len(usable), number, "processors")
	one.Set(usable[number])
	require.NoError(t, unix.SchedSetaffinity(0, &one))
	defer func() { require.NoError(t, unix.SchedSetaffinity(0, &all)) }()
	return startCell(t, number, "embedded.data_dir="+filepath.Join(t.TempDir(), "postgres"))
}

// turn submits the load, and returns what it has cost when all of its jobs have succeeded.
func (w way) turn(t *testing.T) cost {
	t.Helper()
	batches := costBatches * len(w.cells)
	jobs := costBatch * batches
	want := succeeded(t, w.cells) + int64(jobs)
	before := w.used(t)
	batch := "[" + strings.TrimSuffix(strings.Repeat(echo+",", costBatch), ",") + "]"
	var clients sync.WaitGroup
	for client := range costClients * len(w.cells) {
		address := w.addresses[client%len(w.addresses)]
		clients.Go(func() {
			for range costBatches / costClients {
				got, err := call(t.Context(), http.MethodPost, "http://"+address+"/jobs/batch", batch)
				if assert.NoError(t, err) {
					assert.Equal(t, http.StatusAccepted, got.status, string(got.body))
				}
			}
		})
	}
	clients.Wait()
	require.Eventually(t, func() bool { return succeeded(t, w.cells) == want }, rigtest.Patience, 5*glance)
	after, each := w.used(t), time.Duration(jobs)
	return cost{(after.cells - before.cells) / each, (after.proxy - before.proxy) / each}
}

// used is the processor time that the cells and the proxy have used.
func (w way) used(t *testing.T) (used cost) {
	t.Helper()
	of := func(pid int) time.Duration {
		used, known := rig.CPUTime(pid)
		require.True(t, known)
		return used
	}
	for _, c := range w.cells {
		used.cells += of(c.PID())
	}
	if w.proxy != 0 {
		used.proxy = of(w.proxy)
	}
	return used
}

func succeeded(t *testing.T, cells []*cell) (jobs int64) {
	t.Helper()
	for _, c := range cells {
		ctx, cancel := context.WithTimeout(t.Context(), rigtest.Patience)
		got, err := call(ctx, http.MethodGet, "http://"+c.Address+"/metrics", "")
		cancel()
		require.NoError(t, err)
		var said struct{ StatusCounts map[job.State]int64 }
		require.NoError(t, json.Unmarshal(got.body, &said))
		jobs += said.StatusCounts[job.Succeeded]
	}
	return jobs
}
