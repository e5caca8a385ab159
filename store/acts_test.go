package store

import (
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/holdfast-jobs/holdfast/runtime/job"
)

// did writes down an act, and returns it as it is read.
func did(t *testing.T, s *Store, a job.Act) job.Act {
	t.Helper()
	require.NoError(t, s.RecordAct(t.Context(), a))
	found, err := s.Acts(t.Context(), job.ActFilter{Limit: 1})
	require.NoError(t, err)
	require.Len(t, found, 1)
	return found[0]
}

func TestAnActIsReadAsItWasWritten(t *testing.T) {
	s := open(t)
	for _, a := range []job.Act{
		{Actor: "admin", Action: "pause.set", Result: job.ActDone},
		{
			Actor: "token ops", Action: "job.requeue", Tenant: "acme", JobID: &job.ID{7}, Filter: []byte(`{"limit": "10"}`), Count: new(int64(3)),
			Reason: "the bank is back", Result: "refused: it needs the scope operate",
		},
	} {
		read := did(t, s, a)
		require.WithinDuration(t, time.Now(), read.At, time.Minute)
		require.Positive(t, read.ID)
		if a.Filter != nil {
			require.JSONEq(t, string(a.Filter), string(read.Filter))
		}
		a.ID, a.At, a.Filter = read.ID, read.At, read.Filter
		require.Equal(t, a, read)
	}
}

func TestActsAreFoundByWhatTheyAre(t *testing.T) {
	s := open(t)
	one, other := job.ID{1}, job.ID{2}
	var all []job.Act
	for i, a := range []job.Act{
		{Actor: "admin", Action: "job.cancel", Tenant: "acme", JobID: &one},
		{Actor: "token ops", Action: "job.cancel", Tenant: "acme", JobID: &other},
		{Actor: "admin", Action: "job.requeue", Tenant: "zeta", JobID: &one},
		{Actor: "admin", Action: "limit.set"},
		{Actor: "admin", Action: "dead-letter.requeue", Tenant: "acme"},
	} {
		require.NoError(t, s.RecordAct(t.Context(), a))
		// Two of them at the same instant, as in one transaction.
		exec(t, s, "update audit_log set at = '2026-01-01'::timestamptz + $1::integer * interval '1 minute' where audit_id = $2", i/2, i+1)
		all = append(all, a)
	}
	at := func(minute int) time.Time { return time.Date(2026, 1, 1, 0, minute, 0, 0, time.UTC) }
	for name, c := range map[string]struct {
		filter job.ActFilter
		want   []int64 // newest first
	}{
		"all":                        {job.ActFilter{}, []int64{5, 4, 3, 2, 1}},
		"of an actor":                {job.ActFilter{Actor: "token ops"}, []int64{2}},
		"of an action":               {job.ActFilter{Action: "job.cancel"}, []int64{2, 1}},
		"of a tenant":                {job.ActFilter{Tenant: "acme"}, []int64{5, 2, 1}},
		"of a tenant and an actor":   {job.ActFilter{Tenant: "acme", Actor: "admin"}, []int64{5, 1}},
		"of a job":                   {job.ActFilter{Job: &one}, []int64{3, 1}},
		"of a job and a tenant":      {job.ActFilter{Job: &one, Tenant: "acme"}, []int64{1}},
		"of a job, action and actor": {job.ActFilter{Job: &one, Action: "job.requeue", Actor: "admin"}, []int64{3}},
		"from a time":                {job.ActFilter{From: at(1)}, []int64{5, 4, 3}},
		"before a time":              {job.ActFilter{Before: at(1)}, []int64{2, 1}},
		"of a tenant within times":   {job.ActFilter{Tenant: "acme", From: at(0), Before: at(2)}, []int64{2, 1}},
		"of nobody":                  {job.ActFilter{Actor: "nobody"}, nil},
	} {
		t.Run(name, func(t *testing.T) {
			for _, limit := range []int{1, 2, 100} {
				var got []int64
				filter := c.filter
				filter.Limit = limit
				for {
					page, err := s.Acts(t.Context(), filter)
					require.NoError(t, err)
					for _, a := range page {
						got = append(got, a.ID)
						require.Equal(t, all[a.ID-1].Action, a.Action)
						filter.After = job.ActPosition{At: a.At, ID: a.ID}
					}
					if len(page) < limit {
						break
					}
				}
				require.Equal(t, c.want, got, fmt.Sprint(limit))
			}
		})
	}
}

func TestOldActsAreDeletedInPortions(t *testing.T) {
	s := open(t)
	for range 5 {
		did(t, s, job.Act{Actor: "admin", Action: "pause.set"})
	}
	exec(t, s, "update audit_log set at = now() - interval '2 hours' where audit_id <= 3")
	for _, want := range []int{2, 1, 0} {
		deleted, err := s.ForgetActs(t.Context(), time.Hour, 2)
		require.NoError(t, err)
		require.Equal(t, want, deleted)
	}
	require.Equal(t, []int64{4, 5}, ask[[]int64](t, s, "select array_agg(audit_id order by audit_id) from audit_log"))
}

func TestActsAreReadByAnIndex(t *testing.T) {
	s := open(t)
	exec(t, s, `insert into audit_log (at, actor, action, tenant, job_id)
		select now() - n * interval '1 second', 'admin', 'job.cancel', 'tenant ' || n % 100, gen_random_uuid() from generate_series(1, 20000) n`)
	exec(t, s, "analyze audit_log")
	for name, c := range map[string]struct {
		tenant string
		job    *job.ID
		index  string
	}{
		"all": {"", nil, "audit_log_at"}, "tenant": {"tenant 7", nil, "audit_log_tenant"}, "job": {"", &job.ID{1}, "audit_log_job"},
	} {
		before := ask[int64](t, s, "select coalesce(sum(idx_scan), 0) from pg_stat_user_indexes where indexrelname = $1", c.index)
		whole := ask[int64](t, s, "select seq_scan from pg_stat_user_tables where relname = 'audit_log'")
		_, err := s.Acts(t.Context(), job.ActFilter{Limit: 10, Tenant: c.tenant, Job: c.job})
		require.NoError(t, err)
		require.Eventually(t, func() bool {
			return ask[int64](t, s, "select sum(idx_scan) from pg_stat_user_indexes where indexrelname = $1", c.index) > before
		}, patience, 10*time.Millisecond, name)
		require.Equal(t, whole, ask[int64](t, s, "select seq_scan from pg_stat_user_tables where relname = 'audit_log'"), name)
	}
}
