package failover

import (
	"errors"
	"fmt"
	"log/slog"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/stretchr/testify/require"

	"github.com/holdfast-jobs/holdfast/store/embedded"
	"github.com/holdfast-jobs/holdfast/test/chaos/database"
	"github.com/holdfast-jobs/holdfast/test/pgtest"
	"github.com/holdfast-jobs/holdfast/test/rig/rigtest"
)

const (
	// submissionsPerSecond is the load during these failovers.
	submissionsPerSecond = 200
	// An ended job must follow the promotion this soon, in every failover and in half of them.
	// Only the long form judges it.
	firstEndWithin, usualEndWithin = 3 * time.Second, time.Second
)

// ends are the ways in which a primary ends, or seems to.
var ends = map[string]func(*testing.T, *database.Server){
	"killed":  func(t *testing.T, primary *database.Server) { t.Helper(); require.NoError(t, primary.Kill()) },
	"stopped": func(_ *testing.T, primary *database.Server) { primary.Stop() },
	// Like a machine that hangs: it accepts connections, and never answers.
	"hung": func(t *testing.T, primary *database.Server) {
		t.Helper()
		for _, process := range primary.Processes("", 1000) {
			require.NoError(t, process.Signal(syscall.SIGSTOP))
		}
	},
}

// TestOrchestratorsFollowThePrimaryAmongTheHostsOfTheirURL fails over between two servers
// that the orchestrators' URL names, without anything in between, again and again.
// HOLDFAST_TEST_HOST_FAILOVERS is how often in the long form, an even number, which also
// judges how soon jobs end after a primary that was killed or stopped.
func TestOrchestratorsFollowThePrimaryAmongTheHostsOfTheirURL(t *testing.T) {
	t.Parallel()
	random := rigtest.Seeded(t)
	c, url := startHosts(t)
	steps := filepath.Join(t.TempDir(), "steps")
	one, two := orchestrator(t, url, "one", steps), orchestrator(t, url, "two", steps)
	rigtest.Start(t, one)
	rigtest.Start(t, two)
	l := startSteadyLoad(t, submissionsPerSecond, one, two)

	plan, outage := []string{"killed", "stopped", "hung"}, time.Second
	times := number(t, "HOLDFAST_TEST_HOST_FAILOVERS", 0)
	if times > 0 {
		plan, outage = nil, 10*time.Second
		for range times / 2 {
			plan = append(plan, "killed", "stopped")
		}
		for range times / 2 {
			plan = append(plan, "hung")
		}
	}
	found := make(map[bool][]recovery) // by whether the primary hung
	for n, how := range plan {
		l.awaitAccepted(t, 50+random.IntN(300))
		r := failOverHosts(t, c, l, how, time.Duration(random.Int64N(int64(outage))))
		t.Logf("%d. %s: %s", n+1, how, r)
		found[how == "hung"] = append(found[how == "hung"], r)
		require.NoError(t, c.Rebuild(t.Context(), []database.Way{database.Rewind, database.BaseBackup}[random.IntN(2)]))
	}
	l.awaitAccepted(t, 100)
	l.endAndCheck(t, c.Primary().URL(), steps)
	logPercentiles(t, "a primary that hung", found[true])
	ended := logPercentiles(t, "a primary that was killed or stopped", found[false])
	if times > 0 {
		require.LessOrEqual(t, ended[len(ended)-1], firstEndWithin, "the first job that ended after the slowest failover")
		require.LessOrEqual(t, ended[(len(ended)-1)/2], usualEndWithin, "the median")
	}
}

func startHosts(t *testing.T) (c *database.Cluster, url string) {
	t.Helper()
	c, err := database.Start(t.Context(), database.Config{
		Dir: pgtest.Dir(t), Orchestrator: filepath.Join(bin, "orchestrator"), Synchronous: true, Log: slog.New(slog.DiscardHandler),
	}, nil)
	if errors.Is(err, embedded.ErrNoPostgres) {
		t.Skip("two servers need local PostgreSQL binaries: ", err)
	}
	require.NoError(t, err)
	t.Cleanup(c.Close)
	url, err = c.MultiHostURL()
	require.NoError(t, err)
	return c, url
}

// recovery is how long after a promotion something happened for the first time.
type recovery struct {
	// outage is how long no server accepted writes.
	outage time.Duration
	// accepted is an answer 202, ended the end of any job, and both that of a job which was
	// submitted after the promotion.
	accepted, ended, both time.Duration
}

func (r recovery) String() string {
	return fmt.Sprintf("no primary for %s; after the promotion: first 202 %s, first end of a job %s, of one accepted meanwhile %s",
		rounded(r.outage), rounded(r.accepted), rounded(r.ended), rounded(r.both))
}

func rounded(d time.Duration) time.Duration { return d.Round(time.Millisecond) }

// failOverHosts ends the primary, and promotes the standby when a tool might have noticed.
func failOverHosts(t *testing.T, c *database.Cluster, l *load, how string, noticed time.Duration) recovery {
	t.Helper()
	old, next := c.Primary(), c.Standby()
	promoted := make(chan time.Time, 1)
	conn, err := next.Connect(t.Context())
	require.NoError(t, err)
	began := time.Now()
	ends[how](t, old)
	<-time.After(noticed)
	go func() { promoted <- awaitWrites(t, conn) }()
	_, err = c.FailOver(t.Context(), database.Failover{})
	require.NoError(t, err)
	at := <-promoted
	require.NoError(t, conn.Close(t.Context()))

	db, err := next.Connect(t.Context())
	require.NoError(t, err)
	first := func(query string) (found time.Time) {
		require.Eventually(t, func() bool {
			var when *time.Time
			if err := db.QueryRow(t.Context(), query, at).Scan(&when); err != nil || when == nil {
				return false
			}
			found = *when
			return true
		}, patience, glance, query)
		return found
	}
	r := recovery{
		outage: at.Sub(began),
		ended:  first("select min(finished_at) from jobs where finished_at > $1").Sub(at),
		both:   first("select min(finished_at) from jobs where finished_at > $1 and created_at > $1").Sub(at),
	}
	require.NoError(t, db.Close(t.Context()))
	r.accepted = l.firstAccepted(at).Sub(at)
	if how == "hung" {
		require.NoError(t, old.Kill()) // before anything can wake it
	}
	return r
}

// awaitWrites returns when the server accepts writes.
func awaitWrites(t *testing.T, conn *pgx.Conn) time.Time {
	t.Helper()
	for {
		var standby bool
		if err := conn.QueryRow(t.Context(), "select pg_is_in_recovery()").Scan(&standby); err != nil || !standby {
			return time.Now()
		}
		<-time.After(time.Millisecond)
	}
}

// logPercentiles logs how long the recoveries took, and returns when jobs ended, in order.
func logPercentiles(t *testing.T, after string, all []recovery) (ended []time.Duration) {
	t.Helper()
	table := fmt.Sprintf("%d failovers after %s, from the promotion on | median | 90 %% | most\n", len(all), after)
	for _, row := range []struct {
		name string
		of   func(recovery) time.Duration
	}{
		{"first 202", func(r recovery) time.Duration { return r.accepted }},
		{"first job accepted and ended", func(r recovery) time.Duration { return r.both }},
		{"first job ended", func(r recovery) time.Duration { return r.ended }},
	} {
		ended = nil
		for _, r := range all {
			ended = append(ended, rounded(row.of(r)))
		}
		slices.Sort(ended)
		at := func(percent int) time.Duration { return ended[(len(ended)-1)*percent/100] }
		table += fmt.Sprintf("%s | %s | %s | %s\n", row.name, at(50), at(90), at(100))
	}
	t.Log("\n" + strings.TrimSpace(table))
	return ended
}
