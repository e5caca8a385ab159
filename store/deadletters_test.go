package store

import (
	"fmt"
	"testing"
	"time"

	"github.com/jackc/pgx/v5/pgtype"
	"github.com/stretchr/testify/require"

	"github.com/holdfast-jobs/holdfast/runtime/job"
	"github.com/holdfast-jobs/holdfast/store/postgres"
	"github.com/holdfast-jobs/holdfast/store/sql"
)

// died submits a job and dead-letters it with this error.
func died(t testing.TB, s *Store, code, message string, changes ...func(*job.Submission)) job.ID {
	t.Helper()
	given(t, s, changes...)
	claimed, err := s.Claim(t.Context(), worker, []string{jobType, "OTHER"}, 1, aMinute)
	require.NoError(t, err)
	require.Len(t, claimed, 1)
	settlement := as(claimed[0], job.PermanentFailure)
	settlement.Code, settlement.Error = code, message
	require.Equal(t, []job.SettleResult{job.Settled}, settle(t, s, settlement))
	return claimed[0].JobID
}

func groups(t testing.TB, s *Store, filter job.DeadLetterFilter) ([]job.DeadLetterGroup, bool) {
	t.Helper()
	filter.Limit = max(filter.Limit, 1)
	found, more, err := s.DeadLetterGroups(t.Context(), filter)
	require.NoError(t, err)
	for i := range found {
		require.False(t, found[i].FirstDeadAt.IsZero())
		require.False(t, found[i].LastDeadAt.Before(found[i].FirstDeadAt))
		found[i].DeadLetterTimes, found[i].Recent = job.DeadLetterTimes{}, nil
	}
	return found, more
}

func TestGroupsSayHowManyDiedInEachHour(t *testing.T) {
	s := open(t)
	for range 6 {
		died(t, s, "E1", "it is gone")
	}
	died(t, s, "E2", "it is old")
	exec(t, s, `update dead_letters d set dead_at = now() - ago * interval '1 minute'
		from (select job_id, (array[5, 30, 90, 1430, 1450, 4000])[row_number() over (order by job_id)] as ago from dead_letters where error_code = 'E1') n
		where d.job_id = n.job_id`)
	exec(t, s, "update dead_letters set dead_at = now() - interval '25 hours' where error_code = 'E2'")
	for _, tenant := range []string{"", job.DefaultTenant} {
		found, _, err := s.DeadLetterGroups(t.Context(), job.DeadLetterFilter{Limit: 10, Tenant: tenant})
		require.NoError(t, err)
		require.Len(t, found, 2)
		want := make([]int64, 24)
		want[23], want[22], want[0] = 2, 1, 1
		require.Equal(t, want, found[0].Recent, "that of the last hour is the last")
		require.Empty(t, found[1].Recent)
	}
}

func TestDeadLettersAreGroupedByTheirTypeAndError(t *testing.T) {
	s := open(t)
	acme := func(j *job.Submission) { j.Tenant = "acme" }
	other := func(j *job.Submission) { j.Type = "OTHER" }
	oldest := died(t, s, "E1", "order 1 is gone")
	mine := died(t, s, "E1", "order 22 is gone", acme)
	elsewhere := died(t, s, "E1", "order 3 is gone", other)
	different := died(t, s, "E2", "order 4 is gone")
	latest := []job.ID{died(t, s, "E1", "order 5 is gone"), died(t, s, "E1", "order 6 is gone", acme)}
	exec(t, s, "update dead_letters set plugin_version = 'v0' where job_id = $1", postgres.UUID(oldest))

	gone := job.DeadLetterGroup{
		Type: jobType, Code: "E1", Fingerprint: job.Fingerprint("E1", "order 0 is gone"), Message: "order # is gone",
		Count: job.Count{Jobs: 4}, Versions: []string{"v0", "v1"}, Samples: []job.ID{latest[1], latest[0], mine},
	}
	goneElsewhere := gone
	goneElsewhere.Type, goneElsewhere.Jobs, goneElsewhere.Samples, goneElsewhere.Versions = "OTHER", 1, []job.ID{elsewhere}, []string{"v1"}
	goneDifferently := goneElsewhere
	goneDifferently.Type, goneDifferently.Code, goneDifferently.Samples = jobType, "E2", []job.ID{different}
	goneDifferently.Fingerprint = job.Fingerprint("E2", "order 0 is gone")
	ofAcme := gone
	ofAcme.Jobs, ofAcme.Samples, ofAcme.Versions = 2, []job.ID{latest[1], mine}, []string{"v1"}

	for name, c := range map[string]struct {
		filter job.DeadLetterFilter
		groups []job.DeadLetterGroup
		more   bool
	}{
		"all":                    {job.DeadLetterFilter{Limit: 3}, []job.DeadLetterGroup{gone, goneDifferently, goneElsewhere}, false},
		"a type":                 {job.DeadLetterFilter{Type: jobType, Limit: 2}, []job.DeadLetterGroup{gone, goneDifferently}, false},
		"another type":           {job.DeadLetterFilter{Type: "OTHER", Limit: 9}, []job.DeadLetterGroup{goneElsewhere}, false},
		"no such type":           {job.DeadLetterFilter{Type: "NONE", Limit: 9}, nil, false},
		"a tenant":               {job.DeadLetterFilter{Tenant: "acme", Limit: 9}, []job.DeadLetterGroup{ofAcme}, false},
		"a tenant and a type":    {job.DeadLetterFilter{Tenant: "acme", Type: jobType, Limit: 9}, []job.DeadLetterGroup{ofAcme}, false},
		"not of this tenant":     {job.DeadLetterFilter{Tenant: "acme", Type: "OTHER", Limit: 9}, nil, false},
		"a tenant without a job": {job.DeadLetterFilter{Tenant: "aaaa", Limit: 9}, nil, false},
	} {
		t.Run(name, func(t *testing.T) {
			found, more := groups(t, s, c.filter)
			require.Equal(t, c.groups, found)
			require.Equal(t, c.more, more)
		})
	}
	found, more := groups(t, s, job.DeadLetterFilter{Limit: 2})
	require.Len(t, found, 2)
	require.True(t, more)

	t.Run("and found and requeued by group", func(t *testing.T) {
		filter := job.DeadLetterFilter{Type: jobType, Fingerprint: gone.Fingerprint, Limit: 3}
		letters, err := s.DeadLetters(t.Context(), filter)
		require.NoError(t, err)
		require.Equal(t, gone.Samples, lettersOf(letters))
		require.Equal(t, "E1 "+gone.Fingerprint, letters[0].Code+" "+letters[0].Fingerprint)
		filter.After = job.DeadLetterPosition{DeadAt: letters[2].DeadAt, ID: letters[2].ID}
		letters, err = s.DeadLetters(t.Context(), filter)
		require.NoError(t, err)
		require.Equal(t, []job.ID{oldest}, lettersOf(letters))
		for _, filter := range []job.DeadLetterFilter{
			{Fingerprint: gone.Fingerprint, Limit: 9, Type: "OTHER"},
			{Fingerprint: gone.Fingerprint, Limit: 9, Code: "E1", Type: "OTHER"},
		} {
			letters, err = s.DeadLetters(t.Context(), filter)
			require.NoError(t, err)
			require.Equal(t, []job.ID{elsewhere}, lettersOf(letters))
		}
		for _, filter := range []job.DeadLetterFilter{
			{Fingerprint: gone.Fingerprint, Limit: 9, Code: "E2", Type: jobType},
			{Fingerprint: gone.Fingerprint, Limit: 9, Code: "E2"},
			{Fingerprint: "0000000000000000", Limit: 9, Type: jobType},
			{Fingerprint: gone.Fingerprint, Limit: 9, Type: jobType, Tenant: "nobody"},
		} {
			letters, err = s.DeadLetters(t.Context(), filter)
			require.NoError(t, err)
			require.Empty(t, letters)
			requeued, err := s.Redrive(t.Context(), filter)
			require.NoError(t, err)
			require.Empty(t, requeued)
		}
		for _, step := range []struct {
			filter job.DeadLetterFilter
			ids    []job.ID
		}{
			{job.DeadLetterFilter{Type: jobType, Fingerprint: gone.Fingerprint, Limit: 1}, []job.ID{oldest}},
			{job.DeadLetterFilter{Type: jobType, Fingerprint: gone.Fingerprint, Code: "E1", Tenant: "acme", Limit: 1}, []job.ID{mine}},
			{job.DeadLetterFilter{Code: "E2", Limit: 9}, []job.ID{different}},
			{job.DeadLetterFilter{Fingerprint: gone.Fingerprint, Limit: 9}, []job.ID{elsewhere, latest[0], latest[1]}},
		} {
			requeued, err := s.Redrive(t.Context(), step.filter)
			require.NoError(t, err)
			require.ElementsMatch(t, step.ids, requeuedOf(requeued))
		}
		requireSound(t, s)
	})
}

func lettersOf(letters []job.DeadLetter) (all []job.ID) {
	for _, letter := range letters {
		all = append(all, letter.ID)
	}
	return all
}

func requeuedOf(requeued []job.Requeued) (all []job.ID) {
	for _, one := range requeued {
		all = append(all, one.ID)
	}
	return all
}

// Earlier orchestrators know nothing of fingerprints.
func TestFingerprintsOfEarlierDeadLettersAreFilledIn(t *testing.T) {
	s := open(t)
	id := died(t, s, "E1", "order 1 is gone")
	before := row(t, s, id)
	exec(t, s, "update dead_letters set error_code = '', fingerprint = '', plugin_version = ''")
	exec(t, s, "insert into dead_letters (job_id, dead_at) values (gen_random_uuid(), now())") // no such job
	found, _ := groups(t, s, job.DeadLetterFilter{Limit: 9})
	require.Len(t, found, 2)
	for _, group := range found {
		require.Empty(t, group.Fingerprint)
	}
	n, err := s.Fingerprint(t.Context(), 2)
	require.NoError(t, err)
	require.Equal(t, 2, n)
	require.Equal(t, before, row(t, s, id))
	n, err = s.Fingerprint(t.Context(), 2)
	require.NoError(t, err)
	require.Zero(t, n)
}

// A job that was requeued and died again while its fingerprint was computed keeps the later
// one.
func TestALateFingerprintChangesNothing(t *testing.T) {
	s := open(t)
	id := died(t, s, "E2", "later")
	before := row(t, s, id)
	_, err := s.changedIDs(t.Context(), "fingerprint", []any{[]pgtype.UUID{postgres.UUID(id)}, []string{"E1"}, []string{"earlier"}, []string{"v0"}}...)
	require.NoError(t, err)
	require.Equal(t, before, row(t, s, id))
}

// The groups of many dead letters are found by jumping from one to the next.
func TestGroupsAmongManyDeadLettersAreFoundFast(t *testing.T) {
	s := open(t)
	const many, portion = 200_000, 20_000
	for from := 1; from < many; from += portion { // each well within the statement timeout
		exec(t, s, `insert into dead_letters (job_id, dead_at, job_type, tenant, error_code, fingerprint)
			select gen_random_uuid(), now() + i * interval '1 ms', 'T' || i % 4, case when i % 1000 = 0 then 'acme' else 'default' end, 'E', lpad((i % 5)::text, 16, '0')
			from generate_series($1::integer, $2::integer) i`, from, from+portion-1)
	}
	for _, analyzed := range []bool{false, true} {
		t.Run(fmt.Sprintf("analyzed: %t", analyzed), func(t *testing.T) {
			if analyzed {
				exec(t, s, "vacuum analyze dead_letters")
			}
			began := time.Now()
			found, more := groups(t, s, job.DeadLetterFilter{Limit: 1000})
			took := time.Since(began)
			require.Len(t, found, 20)
			require.False(t, more)
			require.Equal(t, job.Count{Jobs: many / 20}, found[0].Count)
			found, _ = groups(t, s, job.DeadLetterFilter{Limit: 1000, Tenant: "acme"})
			require.Len(t, found, 1)
			require.Equal(t, job.Count{Jobs: many / 1000}, found[0].Count)
			t.Logf("%d dead letters: %s", many, took)
			for name, index := range map[string]string{"dead_letter_groups": "dead_letters_group", "dead_letter_groups_of_tenant": "dead_letters_tenant_group"} {
				plan := explainSQL(t, s, sql.Text(name))
				require.NotContains(t, plan, "Seq Scan")
				require.NotContains(t, plan, "dead_letters_dead_at")
				require.NotContains(t, plan, "dead_letters_pkey")
				require.Contains(t, plan, index)
			}
			for _, name := range []string{"dead_letters", "redrive"} {
				plan := explainSQL(t, s, sql.Text(name))
				require.Contains(t, plan, "dead_letters_group")
				require.Contains(t, plan, "dead_letters_dead_at")
				require.NotContains(t, plan, "Seq Scan")
				require.NotContains(t, plan, "unprinted")
			}
			require.Contains(t, explainSQL(t, s, sql.Text("unprinted")), "dead_letters_unprinted")
		})
	}
}
