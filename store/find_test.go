package store

import (
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/holdfast-jobs/holdfast/runtime/job"
	"github.com/holdfast-jobs/holdfast/store/postgres"
	"github.com/holdfast-jobs/holdfast/store/sql"
)

func TestAListForOperatorsSaysHowEachJobIs(t *testing.T) {
	s := open(t)
	held := given(t, s, func(j *job.Submission) { j.Hold = true })
	due := time.Now().Add(time.Hour).Truncate(time.Microsecond)
	later := given(t, s, func(j *job.Submission) { j.RunAt, j.Tags, j.Priority = due, []string{"a", "b"}, 7 })
	failed := running(t, s)
	settlement := as(failed, job.Failure)
	settlement.Delay, settlement.Error = time.Hour, strings.Repeat("é", 300)+"\nand more"
	require.Equal(t, []job.SettleResult{job.Settled}, settle(t, s, settlement))
	done := running(t, s)
	settled(t, s, done, job.Success)
	runs := running(t, s)

	page, err := s.Find(t.Context(), job.Filter{Limit: 10})
	require.NoError(t, err)
	found := map[job.ID]job.Found{}
	for _, one := range page.Jobs {
		require.Equal(t, get(t, s, one.ID), one.View)
		one.View = job.View{}
		found[page.Jobs[len(found)].ID] = one
	}
	retryAt := found[failed.JobID].RunAt
	require.WithinDuration(t, time.Now().Add(time.Hour), retryAt, time.Minute)
	require.Equal(t, map[job.ID]job.Found{
		held:         {Tags: []string{}, MaxAttempts: 4},
		later:        {Tags: []string{"a", "b"}, Priority: 7, RunAt: found[later].RunAt, MaxAttempts: 4},
		failed.JobID: {Tags: []string{}, RunAt: retryAt, Charged: 1, MaxAttempts: 4, Worker: worker, Code: settlement.Code, LastError: strings.Repeat("é", job.MaxFoundError)},
		done.JobID:   {Tags: []string{}, RunAt: found[done.JobID].RunAt, Charged: 1, MaxAttempts: 4, Worker: worker},
		runs.JobID:   {Tags: []string{}, RunAt: found[runs.JobID].RunAt, Charged: 1, MaxAttempts: 4, Worker: worker},
	}, found)
	require.WithinDuration(t, due, found[later].RunAt, 0)
	require.NotEmpty(t, settlement.Code)
}

func TestALookupFindsAnIDOrAKey(t *testing.T) {
	s := open(t)
	keyed := func(tenant, key string) job.ID {
		return given(t, s, func(j *job.Submission) { j.Tenant, j.IdempotencyKey = tenant, key })
	}
	var mine []job.ID
	for _, tenant := range []string{job.DefaultTenant, "acme", "zeta"} {
		keyed(tenant, "another")
		mine = append([]job.ID{keyed(tenant, "order-7")}, mine...)
	}
	keyed("beta", "order-70")
	plain := given(t, s)
	for name, c := range map[string]struct {
		asked job.Lookup
		want  []job.ID
	}{
		"a key of all tenants":  {job.Lookup{Key: "order-7"}, mine},
		"at most so many":       {job.Lookup{Key: "order-7", Limit: 2}, mine[:2]},
		"a key of one tenant":   {job.Lookup{Key: "order-7", Tenant: "acme"}, mine[1:2]},
		"another tenant's key":  {job.Lookup{Key: "order-70", Tenant: "acme"}, nil},
		"an id":                 {job.Lookup{ID: plain}, []job.ID{plain}},
		"an id of its tenant":   {job.Lookup{ID: mine[1], Tenant: "acme"}, mine[1:2]},
		"an id of another":      {job.Lookup{ID: mine[1], Tenant: "zeta"}, nil},
		"both, each found once": {job.Lookup{ID: mine[0], Key: "order-7"}, mine},
		"neither":               {job.Lookup{ID: job.ID{9}, Key: "nothing"}, nil},
	} {
		if c.asked.Limit == 0 {
			c.asked.Limit = 10
		}
		found, err := s.Lookup(t.Context(), c.asked)
		require.NoError(t, err, name)
		var ids []job.ID
		for _, one := range found {
			ids = append(ids, one.ID)
		}
		require.Equal(t, c.want, ids, name)
	}
}

// A key of one tenant among many costs a few reads of the index for each tenant.
func TestALookupReadsOnlyTheFirstTenants(t *testing.T) {
	s := open(t)
	fill(t, s, job.Succeeded, job.MaxLookupTenants+1, "DONE")
	exec(t, s, "update jobs j set tenant = 'tenant-' || to_char(i.n, 'FM00000'), idempotency_key = 'k' from (select job_id, row_number() over () as n from jobs) i where j.job_id = i.job_id")
	exec(t, s, "update jobs set idempotency_key = 'last' where tenant in ('tenant-10000', 'tenant-10001')")
	found, err := s.Lookup(t.Context(), job.Lookup{Key: "last", Limit: 10})
	require.NoError(t, err)
	require.Len(t, found, 1)
	require.Equal(t, "tenant-10000", found[0].Tenant)
}

func TestAListAndALookupShowTheSame(t *testing.T) {
	text, _ := listing(job.Filter{Limit: 1}, foundColumns, maxScan)
	words := func(text string) string { return strings.Join(strings.Fields(text), " ") }
	require.Contains(t, words(text), words(foundColumns))
	require.Contains(t, words(sql.Text("lookup")), words(foundColumns))
	s := open(t)
	id := dead(t, s)
	page, err := s.Find(t.Context(), job.Filter{Limit: 1})
	require.NoError(t, err)
	found, err := s.Lookup(t.Context(), job.Lookup{ID: id, Limit: 1})
	require.NoError(t, err)
	require.Equal(t, page.Jobs, found)
	exec(t, s, "delete from unsuccessful_attempts where job_id = $1", postgres.UUID(id))
	found, err = s.Lookup(t.Context(), job.Lookup{ID: id, Limit: 1})
	require.NoError(t, err)
	require.Empty(t, found[0].Code)
}
