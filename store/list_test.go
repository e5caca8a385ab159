package store

import (
	"bytes"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/holdfast-jobs/holdfast/runtime/job"
	"github.com/holdfast-jobs/holdfast/store/postgres"
	"github.com/holdfast-jobs/holdfast/store/sql"
)

// listed reads the list page by page.
func listed(t testing.TB, s *Store, filter job.Filter) (ids []job.ID, pages int) {
	t.Helper()
	for {
		page, err := s.List(t.Context(), filter)
		require.NoError(t, err)
		require.LessOrEqual(t, len(page.Jobs), filter.Limit)
		pages++
		for _, view := range page.Jobs {
			ids = append(ids, view.ID)
		}
		if page.Next == (job.ID{}) {
			return ids, pages
		}
		filter.After = page.Next
	}
}

// A listedJob is a job and the properties that it was made with.
type listedJob struct {
	id      job.ID
	tenant  string
	kind    string
	tags    []string
	state   job.State
	created time.Time
}

// various stores jobs of two types, of two tenants and in all states. Their ids and
// times of creation are minutes apart.
func various(t testing.TB, s *Store) []listedJob {
	t.Helper()
	var all []listedJob
	start := time.Now().Add(-24 * time.Hour).Truncate(time.Millisecond)
	var made []job.ID
	for i := range 60 {
		made = append(made, inState(t, s, job.States()[i%len(job.States())]))
	}
	for i, id := range made {
		state := job.States()[i%len(job.States())]
		j := listedJob{
			tenant: []string{job.DefaultTenant, "acme"}[i/2%2], kind: []string{"A", "B"}[i/4%2],
			tags: []string{"x", "y"}[i%3/2:], state: state, created: start.Add(time.Duration(i) * 10 * time.Minute),
		}
		j.id = firstID(j.created)
		j.id[15] = byte(i)
		for _, table := range []string{"ready", "leases", "timers", "dead_letters", "jobs"} {
			exec(t, s, "update "+table+" set job_id = $2 where job_id = $1", postgres.UUID(id), postgres.UUID(j.id))
		}
		exec(t, s, "update jobs set tenant = $2, job_type = $3, tags = $4, created_at = $5 where job_id = $1",
			postgres.UUID(j.id), j.tenant, j.kind, j.tags, j.created)
		exec(t, s, "update ready set job_type = $2 where job_id = $1", postgres.UUID(j.id), j.kind)
		exec(t, s, "update dead_letters set job_type = $2, tenant = $3 where job_id = $1", postgres.UUID(j.id), j.kind, j.tenant)
		all = append(all, j)
	}
	slices.Reverse(all) // newest first
	return all
}

func TestAListIsWhatItsFiltersChooseNewestFirst(t *testing.T) {
	s := open(t)
	all := various(t, s)
	oneOf := func(t *rapid.T, name string, of ...string) string {
		return rapid.SampledFrom(append(of, "")).Draw(t, name)
	}
	rapid.Check(t, func(r *rapid.T) {
		filter := job.Filter{
			Type: oneOf(r, "type", "A", "B", "C"), Tenant: oneOf(r, "tenant", job.DefaultTenant, "acme", "nobody"),
			Tag: oneOf(r, "tag", "x", "y", "z"), Limit: rapid.IntRange(1, 70).Draw(r, "limit"),
		}
		if rapid.Bool().Draw(r, "by state") {
			filter.States = rapid.SliceOfNDistinct(rapid.SampledFrom(job.States()), 1, 3, rapid.ID).Draw(r, "states")
		}
		if rapid.Bool().Draw(r, "from") {
			filter.CreatedFrom = all[rapid.IntRange(0, len(all)-1).Draw(r, "oldest")].created
		}
		if rapid.Bool().Draw(r, "before") {
			filter.CreatedBefore = all[rapid.IntRange(0, len(all)-1).Draw(r, "newest")].created
		}
		var want []job.ID
		for _, j := range all {
			if (filter.Type == "" || j.kind == filter.Type) && (filter.Tenant == "" || j.tenant == filter.Tenant) &&
				(filter.Tag == "" || slices.Contains(j.tags, filter.Tag)) &&
				(len(filter.States) == 0 || slices.Contains(filter.States, j.state)) &&
				(filter.CreatedFrom.IsZero() || !j.created.Before(filter.CreatedFrom)) &&
				(filter.CreatedBefore.IsZero() || j.created.Before(filter.CreatedBefore)) {
				want = append(want, j.id)
			}
		}
		got, _ := listed(t, s, filter)
		require.Equal(r, want, got)
		count, err := s.Count(t.Context(), filter)
		require.NoError(r, err)
		require.Equal(r, job.Count{Jobs: len(want)}, count)
	})
}

func TestTimesBoundTheListAcrossClocksThatDiffer(t *testing.T) {
	s := open(t)
	now := ask[time.Time](t, s, "select now()")
	var ids []job.ID
	for _, off := range []time.Duration{4 * time.Minute, -4 * time.Minute} {
		ids = append(ids, given(t, s, func(j *job.Submission) { j.ID = firstID(now.Add(off)) }))
	}
	found, _ := listed(t, s, job.Filter{CreatedFrom: now.Add(-time.Second), CreatedBefore: now.Add(time.Minute), Limit: 10})
	require.Equal(t, ids, found)
	found, _ = listed(t, s, job.Filter{CreatedFrom: now.Add(time.Minute), Limit: 10})
	require.Empty(t, found, "the database's clock decides")
}

func TestJobsThatComeWhileAListIsReadDoNotShiftItsPages(t *testing.T) {
	s := open(t)
	var ids []job.ID
	for range 10 {
		ids = append(ids, given(t, s, func(j *job.Submission) { j.ID[15] = 0 }))
	}
	first, err := s.List(t.Context(), job.Filter{Limit: 4})
	require.NoError(t, err)
	given(t, s)
	late := given(t, s, func(j *job.Submission) { // its id was made before theirs
		j.ID = ids[2]
		j.ID[15] = 1
	})
	rest, _ := listed(t, s, job.Filter{Limit: 4, After: first.Next})
	slices.Reverse(ids)
	require.Equal(t, slices.Insert(ids[4:], 3, late), rest)
}

func TestThePageOfARareJobIsShortButNotTheLast(t *testing.T) {
	s := open(t)
	rare := given(t, s, func(j *job.Submission) {
		j.Tags = []string{"rare"}
		j.ID = job.ID{15: 1} // the oldest
	})
	fill(t, s, job.Queued, maxScan+1, "COMMON")
	ids := ask[[][16]byte](t, s, "select array_agg(job_id order by job_id desc) from jobs")
	page, err := s.List(t.Context(), job.Filter{Tag: "rare", Limit: 10})
	require.NoError(t, err)
	require.Empty(t, page.Jobs)
	require.True(t, bytes.Equal(ids[maxScan-1][:], page.Next[:]), "the next page begins where the scan ended")
	found, pages := listed(t, s, job.Filter{Tag: "rare", Limit: 10})
	require.Equal(t, []job.ID{rare}, found)
	require.Equal(t, 2, pages)
}

// By the statistics, half of all jobs have this type; in truth, almost none do. Its
// own index finds it.
func TestListsAreReadByTheNarrowestIndex(t *testing.T) {
	s := open(t)
	fill(t, s, job.Succeeded, 20_000, "COMMON")
	fill(t, s, job.Dead, 10, "RARE")
	filters := map[string]job.Filter{
		"jobs_pkey": {Tag: "x", After: job.ID{1}}, "jobs_type": {Type: "RARE", Tenant: job.DefaultTenant, States: []job.State{job.Dead, job.Running}},
		"jobs_tenant": {Type: "RARE", Tenant: "acme"}, "leases_pkey": {States: []job.State{job.Running}, Type: "COMMON"},
		"dead_letters_pkey": {States: []job.State{job.Dead}, CreatedFrom: time.Now(), CreatedBefore: time.Now()},
	}
	for _, statistics := range []string{"none", "analyze"} {
		if statistics != "none" {
			exec(t, s, statistics)
		}
		for index, filter := range filters {
			filter.Limit = 100
			text, _ := listing(filter, foundColumns, maxScan)
			plan := explainSQL(t, s, text, sql.Text("list_by_index"))
			require.NotContains(t, plan, "Seq Scan on", "%s", plan)
			require.Equal(t, 1, strings.Count(plan, "Sort\n"), "of the page itself:\n%s", plan)
			scans := regexp.MustCompile("Index (Only )?Scan Backward using " + index)
			require.Len(t, scans.FindAllString(plan, -1), 2, "%s, to list and to find the end:\n%s", scans, plan)
			if page, _, _ := strings.Cut(plan, "Append\n"); strings.HasPrefix(index, "jobs") {
				require.NotContains(t, page, "Nested Loop", "each row is read once:\n%s", plan)
			}
			for _, table := range []string{"jobs", "leases"} {
				for _, found := range regexp.MustCompile(`using `+table+`_pkey on \w+ [jl]_?\d*\n(.*)`).FindAllStringSubmatch(plan, -1) {
					require.Contains(t, found[1], "Index Cond: (", "%s", plan)
				}
			}
		}
	}
}

// A page ends at an id, not at a number of rows.
func TestAJobThatLeavesAListBetweenTwoPagesHidesNoOther(t *testing.T) {
	s := open(t)
	rare := given(t, s, func(j *job.Submission) {
		j.ID, j.Tags = job.ID{15: 1}, []string{"rare"}
	})
	_, err := s.Claim(t.Context(), worker, []string{jobType}, 1, aMinute)
	require.NoError(t, err)
	fill(t, s, job.Running, maxScan, "COMMON")
	filter := job.Filter{States: []job.State{job.Running}, Tag: "rare", Limit: 1}
	page, err := s.List(t.Context(), filter)
	require.NoError(t, err)
	require.Empty(t, page.Jobs)
	exec(t, s, "delete from leases where job_id in (select job_id from leases where worker_id = 'filler' limit 5000)")
	filter.After = page.Next
	page, err = s.List(t.Context(), filter)
	require.NoError(t, err)
	require.Len(t, page.Jobs, 1)
	require.Equal(t, rare, page.Jobs[0].ID)
	require.Zero(t, page.Next)
}

// An earlier orchestrator does not know the types and tenants of dead letters.
func TestDeadLettersOfAnOlderOrchestratorAreFound(t *testing.T) {
	s := open(t)
	id := dead(t, s)
	exec(t, s, "delete from dead_letters")
	exec(t, s, "insert into dead_letters (job_id, dead_at) values ($1, now())", postgres.UUID(id))
	letters, err := s.DeadLetters(t.Context(), job.DeadLetterFilter{Type: jobType, Tenant: job.DefaultTenant, Limit: 10})
	require.NoError(t, err)
	require.Len(t, letters, 1)
	require.Equal(t, id, letters[0].ID)
}

func TestDeadLettersAreFilteredAndPaged(t *testing.T) {
	s := open(t)
	var mine []job.ID
	for i := range 9 {
		kind, tenant := []string{"A", "B"}[i%2], []string{"acme", "other"}[i/2%2]
		given(t, s, func(j *job.Submission) { j.Type, j.Tenant = kind, tenant })
		claimed, err := s.Claim(t.Context(), worker, []string{kind}, 1, aMinute)
		require.NoError(t, err)
		settled(t, s, claimed[0], job.PermanentFailure)
		if kind == "A" && tenant == "acme" {
			mine = append(mine, claimed[0].JobID)
		}
	}
	slices.Reverse(mine)
	filter := job.DeadLetterFilter{Type: "A", Tenant: "acme", Limit: 2}
	var got []job.ID
	for {
		letters, err := s.DeadLetters(t.Context(), filter)
		require.NoError(t, err)
		for _, letter := range letters {
			got = append(got, letter.ID)
			filter.After = job.DeadLetterPosition{DeadAt: letter.DeadAt, ID: letter.ID}
		}
		if len(letters) < filter.Limit {
			break
		}
	}
	require.Equal(t, mine, got)

	requeued, err := s.Redrive(t.Context(), job.DeadLetterFilter{Type: "A", Tenant: "acme", Limit: 100})
	require.NoError(t, err)
	require.Len(t, requeued, len(mine))
	require.Equal(t, 9-len(mine), ask[int](t, s, "select count(*) from dead_letters"))
	requireSound(t, s)
}
