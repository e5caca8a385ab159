package failover

import (
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strconv"
	"testing"
	"time"

	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/stretchr/testify/require"

	"github.com/holdfast-jobs/holdfast/test/pgtest"
	"github.com/holdfast-jobs/holdfast/test/rig"
	"github.com/holdfast-jobs/holdfast/test/rig/rigtest"
)

const (
	patience = rigtest.Patience
	glance   = 20 * time.Millisecond
)

// bin is the directory of the tested binaries.
var bin string

func TestMain(m *testing.M) {
	var err error
	if bin, err = rigtest.Build("../../bin/failover", "../../cmd/orchestrator", "./steps"); err != nil {
		fmt.Fprintln(os.Stderr, "build:", err)
		os.Exit(1)
	}
	pgtest.Main(m)
}

// kinds are the ways in which a stalled standby takes over. Each repeats a few times
// what it does to the commits that wait for the standby.
var kinds = map[string]func(*testing.T, *cluster){
	"stall, cut, promote": func(_ *testing.T, c *cluster) { c.proxy.Cut() },
	"stall, cancel, promote": func(t *testing.T, c *cluster) {
		t.Helper()
		if c.random.IntN(4) == 0 {
			c.TerminateWaiting(t)
		} else {
			c.CancelWaiting(t)
		}
	},
}

// cluster is a pair of servers that orchestrators reach through a proxy. The proxy is
// like an address that moves to the new primary.
type cluster struct {
	*pgtest.Pair
	proxy  *pgtest.Proxy
	random *rand.Rand
}

func TestNothingAcknowledgedIsLostInAFailover(t *testing.T) {
	times := number(t, "HOLDFAST_TEST_FAILOVERS", 1)
	seed := number(t, "HOLDFAST_TEST_SEED", uint64(time.Now().UnixNano()))
	t.Logf("HOLDFAST_TEST_SEED=%d", seed)
	for kind, hit := range kinds {
		for n := range times {
			t.Run(fmt.Sprintf("%s/%d", kind, n+1), func(t *testing.T) {
				t.Parallel()
				failOver(t, rand.New(rand.NewPCG(seed, n)), hit)
			})
		}
	}
}

func failOver(t *testing.T, random *rand.Rand, hit func(*testing.T, *cluster)) {
	t.Helper()
	pair := pgtest.NewPair(t)
	c := &cluster{Pair: pair, proxy: pgtest.Between(t, pair.Primary), random: random}
	steps := filepath.Join(t.TempDir(), "steps")
	one, two := orchestrator(t, c.proxy.URL, "one", steps, impatient...), orchestrator(t, c.proxy.URL, "two", steps, impatient...)
	rigtest.Start(t, one)
	rigtest.Start(t, two)
	l := startLoad(t, one, two)
	l.awaitAccepted(t, 50+random.IntN(200))

	c.Stall()
	for range 2 + random.IntN(4) {
		c.AwaitWaiting(t, 1+random.IntN(2))
		hit(t, c)
		l.awaitAsked(t, int64(random.IntN(2*clients)))
	}
	before := l.acceptedSoFar()
	c.Promote(t)
	c.proxy.Lead(t, c.Standby)
	if random.IntN(2) == 0 {
		c.Kill(t)
	}
	c.proxy.Cut()
	l.awaitAccepted(t, 100)
	t.Logf("acknowledged before the failover: %d", before)
	l.endAndCheck(t, c.Standby, steps)
}

// endAndCheck ends the load, waits until all jobs have ended, ends the orchestrators, and
// checks that the database has one job for each key, which has succeeded.
func (l *load) endAndCheck(t *testing.T, database, steps string) {
	t.Helper()
	l.end()
	db, err := pgxpool.New(t.Context(), database)
	require.NoError(t, err)
	t.Cleanup(db.Close)
	require.Eventually(t, func() bool {
		var left int
		err := db.QueryRow(t.Context(), "select count(*) from jobs where finished_at is null").Scan(&left)
		return err == nil && left == 0
	}, patience, glance, "jobs that have not ended")
	for _, server := range l.servers {
		require.NoError(t, server.ShutDown(t.Context()))
	}
	found := check(t, l, db, steps)
	t.Logf("acknowledged: %d; lost: %d; second jobs for a key: %d; fences twice: %d; overlaps: %d; failed: %d",
		l.acceptedSoFar(), len(found.Lost), len(found.SecondJobs), len(found.FencesTwice), len(found.Overlaps), found.Failed)
	require.Zero(t, found)
	requireAttemptsInOrder(t, db)
}

// requireAttemptsInOrder checks that every claim has exactly one end, and that no
// attempt began before the previous one ended.
func requireAttemptsInOrder(t *testing.T, db *pgxpool.Pool) {
	t.Helper()
	var odd int
	require.NoError(t, db.QueryRow(t.Context(), `select count(*) from jobs j where j.fence <> (
		select count(*) from job_attempts a where a.job_id = j.job_id)`).Scan(&odd))
	require.Zero(t, odd, "claims without exactly one end")
	require.NoError(t, db.QueryRow(t.Context(), `select count(*) from job_attempts a join job_attempts b
		on b.job_id = a.job_id and b.fence = a.fence + 1 where b.claimed_at < a.ended_at`).Scan(&odd))
	require.Zero(t, odd, "attempts that overlap")
}

// impatient are settings with which what is left over after a fault is over soon.
var impatient = []string{"worker.lease=3s", "worker.kill_grace=300ms", "worker.drain_timeout=5s", "server.request_timeout=2s"}

func orchestrator(t *testing.T, url, name, steps string, more ...string) *rig.Orchestrator {
	t.Helper()
	return rigtest.New(t, filepath.Join(bin, "orchestrator"), t.TempDir(), append([]string{
		"database.url=" + url, "worker.id=" + name, "log.format=json",
		"plugins.0.name=steps", "plugins.0.path=" + filepath.Join(bin, "steps"), "plugins.0.concurrency=20",
		"plugins.0.env.STEPS=" + steps,
	}, more...)...)
}

func number(t *testing.T, variable string, otherwise uint64) uint64 {
	t.Helper()
	text := os.Getenv(variable)
	if text == "" {
		return otherwise
	}
	n, err := strconv.ParseUint(text, 10, 64)
	require.NoError(t, err, variable)
	return n
}
