package store

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/holdfast-jobs/holdfast/runtime/job"
	"github.com/holdfast-jobs/holdfast/store/postgres"
)

func promote(t testing.TB, s *Store, limit int) int {
	t.Helper()
	promoted, err := s.Promote(t.Context(), limit)
	require.NoError(t, err)
	return promoted.Ready + promoted.Parked
}

// pass makes everything that is scheduled due sooner.
func pass(t testing.TB, s *Store, d time.Duration) {
	t.Helper()
	exec(t, s, `with moved as (
			update timers set run_at = run_at - $1::interval where run_at < 'infinity' returning job_id, run_at
		) update jobs j set run_at = m.run_at from moved m where m.job_id = j.job_id`, postgres.Interval(d))
}

func TestJobsAreScheduledWhenTheyAreDueAndNotBefore(t *testing.T) {
	s := open(t)
	soon := given(t, s, func(j *job.Submission) { j.Delay = time.Hour })
	late := given(t, s, func(j *job.Submission) { j.Delay = 2 * time.Hour })
	held := given(t, s, func(j *job.Submission) { j.Hold = true })
	failed := running(t, s)
	backoff := as(failed, job.Failure)
	backoff.Delay = time.Hour
	require.Equal(t, []job.SettleResult{job.Settled}, settle(t, s, backoff))

	require.Zero(t, promote(t, s, 10))
	pass(t, s, 61*time.Minute)
	require.Equal(t, 1, promote(t, s, 1))
	require.Equal(t, 1, promote(t, s, 10))
	requireState(t, s, soon, job.Queued)
	requireState(t, s, failed.JobID, job.Queued)
	requireState(t, s, late, job.Created)
	pass(t, s, 1000*time.Hour)
	require.Equal(t, 1, promote(t, s, 10))
	requireState(t, s, late, job.Queued)
	requireState(t, s, held, job.Created)

	s.marks = newLowWaterMarks()
	claimed := claim(t, s, 10)
	require.Len(t, claimed, 3)
	for _, c := range claimed {
		if c.JobID == failed.JobID {
			require.Equal(t, 2, c.Attempt)
		}
	}
}

func TestAScheduledJobThatIsHeldMissesItsTime(t *testing.T) {
	s := open(t)
	id := given(t, s, func(j *job.Submission) { j.Delay = time.Hour })
	for range 2 { // holding twice is no error
		view, err := s.Hold(t.Context(), id)
		require.NoError(t, err)
		require.Equal(t, job.Created, view.State)
	}
	pass(t, s, 2*time.Hour)
	require.Zero(t, promote(t, s, 10))
	require.True(t, ask[bool](t, s, "select run_at = 'infinity' from jobs"))
	_, err := s.Release(t.Context(), id)
	require.NoError(t, err)
	requireState(t, s, id, job.Queued)
}

func TestTheEarliestDueIsPromotedFirst(t *testing.T) {
	s := open(t)
	var ids []job.ID
	for i := range 4 {
		ids = append(ids, given(t, s, func(j *job.Submission) { j.Delay = time.Hour - time.Duration(i)*time.Minute }))
	}
	pass(t, s, time.Hour)
	require.Equal(t, 2, promote(t, s, 2))
	for i, state := range []job.State{job.Created, job.Created, job.Queued, job.Queued} {
		requireState(t, s, ids[i], state)
	}
}

func TestSchedulersSkipWhatAnotherMoves(t *testing.T) {
	s := open(t)
	ids := submit(t, s, submissions(t, 2, func(j *job.Submission) { j.Delay = time.Hour })...)
	pass(t, s, time.Hour)
	commit := locked(t, s, "select from timers where job_id = $1 for update", postgres.UUID(ids[0]))
	require.Equal(t, 1, promote(t, s, 10))
	commit()
	require.Equal(t, 1, promote(t, s, 10))
	requireSound(t, s)
}

func TestTheNextDueTime(t *testing.T) {
	s := open(t)
	next := func() (time.Duration, bool) {
		in, ok, err := s.NextDue(t.Context())
		require.NoError(t, err)
		return in, ok
	}
	_, ok := next()
	require.False(t, ok, "nothing is scheduled")
	given(t, s, func(j *job.Submission) { j.Hold = true })
	_, ok = next()
	require.False(t, ok, "what is held is never due")

	given(t, s, func(j *job.Submission) { j.RunAt = time.Date(9999, 1, 1, 0, 0, 0, 0, time.UTC) })
	in, ok := next()
	require.True(t, ok)
	require.Equal(t, 36500*24*time.Hour, in, "a century at most")
	given(t, s, func(j *job.Submission) { j.Delay = 40 * 24 * time.Hour })
	in, ok = next()
	require.True(t, ok)
	require.InDelta(t, 40*24*time.Hour, in, float64(time.Hour))
	pass(t, s, 41*24*time.Hour)
	in, ok = next()
	require.True(t, ok)
	require.Zero(t, in, "overdue is due now")
}

func TestTypesThatNobodyServesAreReported(t *testing.T) {
	s := open(t)
	ago := func(kind string, d time.Duration) func(*job.Submission) {
		return func(j *job.Submission) { j.Type, j.RunAt = kind, time.Now().Add(-d) }
	}
	submit(t, s, submissions(t, 3, ago("OLD", time.Hour))...)
	given(t, s, ago("OLD", 2*time.Hour))
	given(t, s, ago("ANCIENT", 250*365*24*time.Hour))
	given(t, s, func(j *job.Submission) { j.Type, j.RunAt = "ROMAN", time.Date(1, 2, 3, 0, 0, 0, 0, time.UTC) })
	given(t, s, ago("YOUNG", time.Second))
	given(t, s, func(j *job.Submission) { j.Type, j.Hold = "HELD", true })
	fill(t, s, job.Queued, 1500, "MANY")

	found, err := s.Unserved(t.Context(), 10*time.Minute)
	require.NoError(t, err)
	require.Len(t, found, 4)
	require.Equal(t, []string{"ANCIENT", "MANY", "OLD", "ROMAN"}, []string{found[0].Type, found[1].Type, found[2].Type, found[3].Type})
	require.Equal(t, []int{1, 1000, 4, 1}, []int{found[0].Jobs, found[1].Jobs, found[2].Jobs, found[3].Jobs})
	require.InDelta(t, 2*time.Hour, found[2].Oldest, float64(time.Minute))
	require.Equal(t, 36500*24*time.Hour, found[3].Oldest)
	found, err = s.Unserved(t.Context(), 200*365*24*time.Hour)
	require.NoError(t, err)
	require.Empty(t, found)
}

// The server's time zone is half an hour off all others. Due times are instants, so no
// session setting moves them.
func TestDueTimesDoNotDependOnTheServersZone(t *testing.T) {
	first := open(t)
	exec(t, first, "do $$ begin execute format('alter database %I set timezone = ''Asia/Kolkata''', current_database()); end $$")
	conn := connect(t, urlOf(first))
	var zone string
	require.NoError(t, conn.QueryRow(t.Context(), "show timezone").Scan(&zone))
	require.Equal(t, "Asia/Kolkata", zone, "what others get")

	s := openAt(t, urlOf(first))
	require.Equal(t, "UTC", ask[string](t, s, "show timezone"))
	at := time.Now().Add(time.Hour).Truncate(time.Microsecond)
	zoned := given(t, s, func(j *job.Submission) { j.RunAt = at.In(time.FixedZone("IST", 19800)) })
	delayed := given(t, s, func(j *job.Submission) { j.Delay = time.Hour })
	require.Zero(t, promote(t, s, 10), "nothing is due an hour early")
	require.True(t, at.Equal(ask[time.Time](t, s, "select run_at from jobs where job_id = $1", postgres.UUID(zoned))))
	require.True(t, ask[bool](t, s, "select run_at = created_at + interval '1 hour' from jobs where job_id = $1", postgres.UUID(delayed)))

	// A session in the server's own zone sees the same instant.
	var seen time.Time
	require.NoError(t, conn.QueryRow(t.Context(), "select run_at from jobs where job_id = $1", postgres.UUID(zoned)).Scan(&seen))
	require.True(t, at.Equal(seen))
	pass(t, s, 61*time.Minute)
	require.Equal(t, 2, promote(t, s, 10))
	view := get(t, s, zoned)
	require.InDelta(t, 0, time.Since(view.CreatedAt), float64(10*time.Minute))
	requireSound(t, s)
}
