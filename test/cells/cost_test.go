package cells

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"net/http"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/holdfast-jobs/holdfast/runtime/job"
	"github.com/holdfast-jobs/holdfast/test/rig"
	"github.com/holdfast-jobs/holdfast/test/rig/rigtest"
)

const (
	costBatch   = 1000
	costBatches = 60
	costClients = 4
	costRounds  = 7
	// most is what two cells behind a proxy may cost, as a multiple of one without.
	most = 1.1
)

// setup is what a round measures: so many cells, behind a proxy unless that is empty.
type setup struct {
	name, proxy string
	cells       int
}

// cost is the processor time of a job, by who used it.
type cost map[string]time.Duration

func (c cost) total() (sum time.Duration) {
	for _, part := range c {
		sum += part
	}
	return sum
}

func (c cost) String() string {
	var parts []string
	for _, who := range slices.Sorted(maps.Keys(c)) {
		parts = append(parts, fmt.Sprintf("%s %.1f µs", who, float64(c[who])/1e3))
	}
	return fmt.Sprintf("%.1f µs a job: %s", float64(c.total())/1e3, strings.Join(parts, ", "))
}

// Two cells take the same load in batches as one, together. Rounds take turns, because the speed
// of a machine changes.
func TestTwoCellsBehindAProxyCostLittleMoreThanOne(t *testing.T) {
	if !full() {
		t.Skip("it needs the machine for itself: make cells")
	}
	setups := []setup{{"one cell", "", 1}, {"two cells behind nginx", "nginx", 2}, {"two cells behind HAProxy", "HAProxy", 2}}
	measured := make(map[string][]cost)
	for round := range costRounds {
		for i := range setups {
			s := setups[(i+round)%len(setups)]
			t.Run(fmt.Sprintf("%s, round %d", s.name, round+1), func(t *testing.T) {
				c := s.measure(t)
				t.Log(c)
				measured[s.name] = append(measured[s.name], c)
			})
		}
	}
	median := func(name string) cost {
		all := measured[name]
		require.Len(t, all, costRounds, name)
		slices.SortFunc(all, func(a, b cost) int { return int(a.total() - b.total()) })
		t.Logf("%s: from %.1f to %.1f µs a job in %d rounds", name, float64(all[0].total())/1e3, float64(all[costRounds-1].total())/1e3, costRounds)
		return all[costRounds/2]
	}
	one := median(setups[0].name)
	t.Logf("%s: %s", setups[0].name, one)
	for _, s := range setups[1:] {
		two := median(s.name)
		ratio := float64(two.total()) / float64(one.total())
		t.Logf("%s: %s; %.2f times one cell", s.name, two, ratio)
		assert.LessOrEqual(t, ratio, most, s.name)
	}
}

// measure runs the load, and returns what a job has cost.
func (s setup) measure(t *testing.T) cost {
	t.Helper()
	cells := startSome(t, s.cells)
	address, proxy := cells[0].Address, 0
	if s.proxy != "" {
		address, proxy = startProxy(t, s.proxy, addresses(cells))
	}
	roots := map[string][]int{"PostgreSQL": {postmaster(t, cells[0].url)}}
	if proxy != 0 {
		roots["proxy"] = []int{proxy}
	}
	for _, c := range cells {
		roots["orchestrators and plugins"] = append(roots["orchestrators and plugins"], c.PID())
	}
	submitAll(t, address, cells, costClients) // so that everything is warm
	before := usageOf(t, roots)
	submitAll(t, address, cells, costBatches)
	used := usageOf(t, roots)
	for who := range used {
		used[who] = (used[who] - before[who]) / (costBatch * costBatches)
	}
	return used
}

func usageOf(t *testing.T, roots map[string][]int) cost {
	t.Helper()
	used := make(cost)
	for who, pids := range roots {
		for _, pid := range pids {
			of, known := rig.CPUTime(pid)
			require.True(t, known, who)
			used[who] += of
		}
	}
	return used
}

// postmaster is the process that all of PostgreSQL descends from.
func postmaster(t *testing.T, url string) int {
	t.Helper()
	conn, err := pgx.Connect(t.Context(), url)
	require.NoError(t, err)
	defer func() { require.NoError(t, conn.Close(t.Context())) }()
	var pid int
	require.NoError(t, conn.QueryRow(t.Context(), "select pg_backend_pid()").Scan(&pid))
	root, err := rig.Parent(pid)
	require.NoError(t, err)
	return root
}

// submitAll submits so many batches, and returns when all of their jobs have succeeded.
func submitAll(t *testing.T, address string, cells []*cell, batches int) {
	t.Helper()
	want := succeeded(t, cells) + costBatch*int64(batches)
	batch := "[" + strings.TrimSuffix(strings.Repeat(echo+",", costBatch), ",") + "]"
	next := make(chan int, batches)
	for n := range batches {
		next <- n
	}
	close(next)
	var clients sync.WaitGroup
	for range costClients {
		clients.Go(func() {
			for range next {
				got, err := call(t.Context(), http.MethodPost, "http://"+address+"/jobs/batch", batch)
				if assert.NoError(t, err) {
					assert.Equal(t, http.StatusAccepted, got.status, string(got.body))
				}
			}
		})
	}
	clients.Wait()
	require.Eventually(t, func() bool { return succeeded(t, cells) == want }, rigtest.Patience, 10*glance)
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
