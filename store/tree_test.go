package store

import (
	"encoding/json"
	"testing"

	"github.com/jackc/pgx/v5"
	"github.com/stretchr/testify/require"

	"github.com/holdfast-jobs/holdfast/runtime/job"
	"github.com/holdfast-jobs/holdfast/store/postgres"
	"github.com/holdfast-jobs/holdfast/store/sql"
)

// childOf makes a submission a follow-up of the job.
func childOf(id job.ID) func(*job.Submission) { return func(s *job.Submission) { s.Parent = id } }

// treeOf returns the jobs of a tree, and their depths.
func treeOf(t testing.TB, s *Store, id job.ID, filter job.TreeFilter) (ids []job.ID, depths []int, truncated bool) {
	t.Helper()
	tree, err := s.Tree(t.Context(), id, filter)
	require.NoError(t, err)
	for _, one := range tree.Jobs {
		ids, depths = append(ids, one.ID), append(depths, one.Depth)
	}
	return ids, depths, tree.Truncated
}

func TestATreeHasTheDescendantsOfAJob(t *testing.T) {
	s := open(t)
	root := given(t, s)
	given(t, s) // not in the tree
	first, second := given(t, s, childOf(root)), given(t, s, childOf(root))
	below := given(t, s, childOf(second))
	usual := job.TreeFilter{Depth: 10, Limit: 10}

	ids, depths, truncated := treeOf(t, s, root, usual)
	require.Equal(t, []job.ID{root, first, second, below}, ids)
	require.Equal(t, []int{0, 1, 1, 2}, depths)
	require.False(t, truncated)
	tree, err := s.Tree(t.Context(), below, usual)
	require.NoError(t, err)
	require.Len(t, tree.Jobs, 1)
	require.Equal(t, second, tree.Jobs[0].Parent)
	require.Equal(t, job.Queued, tree.Jobs[0].State)
	require.Equal(t, second, detail(t, s, below).Parent)
	require.Equal(t, job.ID{}, detail(t, s, root).Parent)

	ids, _, _ = treeOf(t, s, below, job.TreeFilter{FromRoot: true, Depth: 10, Limit: 10})
	require.Equal(t, []job.ID{root, first, second, below}, ids)
	ids, _, truncated = treeOf(t, s, root, job.TreeFilter{Depth: 1, Limit: 10})
	require.Equal(t, []job.ID{root, first, second}, ids)
	require.True(t, truncated)
	ids, _, truncated = treeOf(t, s, root, job.TreeFilter{Depth: 10, Limit: 2})
	require.Equal(t, []job.ID{root, first}, ids)
	require.True(t, truncated)
	_, _, truncated = treeOf(t, s, root, job.TreeFilter{Depth: 2, Limit: 4})
	require.False(t, truncated, "there are no more")

	exec(t, s, "delete from ready where job_id = $1", postgres.UUID(root))
	exec(t, s, "delete from jobs where job_id = $1", postgres.UUID(root))
	ids, _, _ = treeOf(t, s, below, job.TreeFilter{FromRoot: true, Depth: 10, Limit: 10})
	require.Equal(t, []job.ID{second, below}, ids, "the first ancestor that is still there")
	_, err = s.Tree(t.Context(), root, usual)
	require.ErrorIs(t, err, job.ErrNotFound)
}

// A chain or a family without end costs no more than what is shown of it.
func TestATreeReadsOnlyWhatItShows(t *testing.T) {
	s := open(t)
	root := given(t, s)
	exec(t, s, `insert into jobs (job_id, tenant, job_type, payload, priority, tags, trace_parent, trace_state, max_attempts, timeout, state, run_at, request_hash, parent_id)
		select gen_random_uuid(), 'default', 'ECHO', 'null', 0, '{}', '', '', 1, '1 s', 'created', 'infinity', '', $1 from generate_series(1, 20000)`, postgres.UUID(root))
	exec(t, s, "insert into timers (job_id, run_at, job_type) select job_id, run_at, job_type from jobs where parent_id is not null")
	exec(t, s, "analyze jobs")
	ids, _, truncated := treeOf(t, s, root, job.TreeFilter{Depth: 100, Limit: 1000})
	require.Len(t, ids, 1000)
	require.True(t, truncated)
	var plan []struct {
		Plan struct {
			Hit int `json:"Shared Hit Blocks"`
		}
	}
	found, err := pgx.CollectExactlyOneRow(query(t, s, "explain (analyze, buffers, format json) "+sql.Text("tree"), postgres.UUID(root), false, 1000, 101, 1001), pgx.RowTo[[]byte])
	require.NoError(t, err)
	require.NoError(t, json.Unmarshal(found, &plan))
	require.Less(t, plan[0].Plan.Hit, 20_000, "of 20,000 jobs, with several blocks each")
}

func query(t testing.TB, s *Store, text string, args ...any) pgx.Rows {
	t.Helper()
	rows, err := s.db.Worker.Query(t.Context(), text, args...)
	require.NoError(t, err)
	return rows
}

func TestAListHasTheChildrenOfAJob(t *testing.T) {
	s := open(t)
	root := given(t, s)
	first, second := given(t, s, childOf(root)), given(t, s, childOf(root), func(j *job.Submission) { j.Tenant = "acme" })
	given(t, s, childOf(second))
	list := func(filter job.Filter) (ids []job.ID) {
		filter.Limit = 10
		page, err := s.List(t.Context(), filter)
		require.NoError(t, err)
		for _, one := range page.Jobs {
			ids = append(ids, one.ID)
		}
		return ids
	}
	require.Equal(t, []job.ID{second, first}, list(job.Filter{Parent: root}))
	require.Equal(t, []job.ID{second}, list(job.Filter{Parent: root, Tenant: "acme"}))
	require.Equal(t, []job.ID{first}, list(job.Filter{Parent: root, After: second}))
	require.Empty(t, list(job.Filter{Parent: first}))
	require.Empty(t, list(job.Filter{Parent: root, States: []job.State{job.Dead}}))
}
