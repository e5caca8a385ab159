package store

import (
	"encoding/json"
	"fmt"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/stretchr/testify/require"

	"github.com/holdfast-jobs/holdfast/runtime/job"
	"github.com/holdfast-jobs/holdfast/store/postgres"
	"github.com/holdfast-jobs/holdfast/store/sql"
)

// A hundred thousand jobs that nobody serves cost other jobs nothing. The test counts
// buffers, because time depends on the machine.
func TestJobsOfATypeThatNobodyServesCostOthersNothing(t *testing.T) {
	s := open(t)
	const limit = 50
	fill(t, s, job.Queued, 3*limit, jobType)
	before := searched(t, s, limit, everything(jobType))
	fill(t, s, job.Queued, 100_000, "A_FIRST")
	fill(t, s, job.Queued, 1000, "ZZZ_LAST")
	require.LessOrEqual(t, searched(t, s, limit, everything(jobType)), before+20, "a deeper index, no more")
	require.Len(t, claim(t, s, limit), limit)
}

// While an old snapshot blocks vacuum, every claimed job leaves a dead entry in the
// ready list. The mark keeps claims from passing them.
func TestAnOldSnapshotDoesNotSlowClaimsDown(t *testing.T) {
	s := open(t)
	const passing, batch, limit = 20_000, 1000, 50
	fillAt(t, s, passing+limit, 10*time.Millisecond)

	old := connect(t, urlOf(s))
	snapshot, err := old.BeginTx(t.Context(), pgx.TxOptions{IsoLevel: pgx.RepeatableRead})
	require.NoError(t, err)
	var seen int
	require.NoError(t, snapshot.QueryRow(t.Context(), "select count(*) from ready").Scan(&seen))
	require.Equal(t, passing+limit, seen)

	for range passing / batch {
		claimed := claim(t, s, batch)
		require.Len(t, claimed, batch)
		settlements := make([]job.Settlement, batch)
		for i, c := range claimed {
			settlements[i] = as(c, job.Success)
		}
		settle(t, s, settlements...)
	}
	with := searched(t, s, limit, s.marks.ranges([]string{jobType})...)
	without := searched(t, s, limit, everything(jobType))
	require.Less(t, with, 500, "with the mark")
	require.Greater(t, without, passing, "without it, every dead entry is looked at")
	require.NoError(t, snapshot.Rollback(t.Context()))
	require.Len(t, claim(t, s, batch), limit)
	requireSound(t, s)
}

// searched is how many buffers a claim touches to find its jobs.
func searched(t testing.TB, s *Store, limit int, ranges ...queueRange) int {
	t.Helper()
	tx, err := s.db.Worker.Begin(t.Context())
	require.NoError(t, err)
	defer func() { require.NoError(t, tx.Rollback(t.Context())) }()
	_, err = tx.Exec(t.Context(), "prepare probe as "+sql.Text("claim"))
	require.NoError(t, err)
	var types, urgencies, runAts, jobIDs, untils, jobs []string
	for _, part := range ranges {
		runAt := "-infinity"
		if !part.from.runAt.IsZero() {
			runAt = part.from.runAt.Format(time.RFC3339Nano)
		}
		types, urgencies = append(types, part.jobType), append(urgencies, strconv.Itoa(int(part.urgency)))
		runAts, jobIDs = append(runAts, runAt), append(jobIDs, part.from.id.String())
		untils, jobs = append(untils, strconv.Itoa(int(part.until))), append(jobs, strconv.Itoa(limit))
	}
	ids := ask[string](t, s, "select string_agg(gen_random_uuid()::text, ',') from generate_series(1, $1)", limit)
	var text []byte
	require.NoError(t, tx.QueryRow(t.Context(), fmt.Sprintf(
		"explain (analyze, buffers, timing off, format json) execute probe('{%s}', '{%s}', '{%s}', '{%s}', '{%s}', %d, 'w', '1 minute', '{%s}', '{%s}')",
		strings.Join(types, ","), strings.Join(urgencies, ","), strings.Join(runAts, ","),
		strings.Join(jobIDs, ","), strings.Join(untils, ","), limit, ids, strings.Join(jobs, ",")),
		pgx.QueryExecModeSimpleProtocol).Scan(&text))
	_, err = tx.Exec(t.Context(), "deallocate probe")
	require.NoError(t, err)
	var explained []struct{ Plan node }
	require.NoError(t, json.Unmarshal(text, &explained))
	picked, ok := explained[0].Plan.find("CTE picked")
	require.True(t, ok)
	require.InDelta(t, limit, picked.Rows, 0)
	return picked.Hit + picked.Read
}

// node is the part of EXPLAIN's JSON that the test needs.
type node struct {
	Subplan string  `json:"Subplan Name"`
	Rows    float64 `json:"Actual Rows"` // a number with decimals from version 18 on
	Hit     int     `json:"Shared Hit Blocks"`
	Read    int     `json:"Shared Read Blocks"`
	Plans   []node
}

func (n node) find(subplan string) (node, bool) {
	if n.Subplan == subplan {
		return n, true
	}
	for _, child := range n.Plans {
		if found, ok := child.find(subplan); ok {
			return found, true
		}
	}
	return node{}, false
}

// fillAt queues n jobs of one urgency, with the same time between their due times.
// Their order in the heap is random, so that every visit counts: a buffer that is
// visited twice in a row counts once.
func fillAt(t testing.TB, s *Store, n int, apart time.Duration) {
	t.Helper()
	fill(t, s, job.Queued, n, jobType)
	exec(t, s, `update jobs j set priority = 0, run_at = now() - interval '1 day' + p.place * $1::interval
		from (select job_id, row_number() over (order by run_at) as place from jobs) p where p.job_id = j.job_id`, postgres.Interval(apart))
	exec(t, s, "truncate ready")
	exec(t, s, "insert into ready select job_id, job_type, -priority, run_at from jobs order by md5(job_id::text)")
}
