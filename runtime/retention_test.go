package runtime_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/holdfast-jobs/holdfast/runtime/job"
)

// ended stores jobs, cancels them, and makes all jobs look as if they had ended so long ago.
func ended(t *testing.T, db *database, n int, ago time.Duration, changes ...func(*job.Submission)) []job.ID {
	t.Helper()
	ids := make([]job.ID, n)
	for i := range ids {
		one := submission(t, changes...)
		require.NoError(t, db.Submit(t.Context(), []job.Submission{one})[0].Err)
		_, err := db.Cancel(t.Context(), one.ID)
		require.NoError(t, err)
		ids[i] = one.ID
		copy(ids[i][:6], []byte{1, 0, 0, 0, 0, 0}) // of the distant past
		_, err = db.pool.Exec(t.Context(), `update jobs set job_id = $2, finished_at = now() - $3::interval where job_id = $1`,
			uuid(one.ID), uuid(ids[i]), ago)
		require.NoError(t, err)
	}
	return ids
}

// The policies are set while two orchestrators run. Afterwards jobs go on going.
func TestOldJobsGoWhileOrchestratorsRun(t *testing.T) {
	t.Parallel()
	db := fresh(t)
	measured, counts := metered(t)
	p, other := launch(t, db, supervise(t), measured), launch(t, openAt(t, db.url), supervise(t), measured)
	ended(t, db, 20, 2*time.Hour)
	young := ended(t, db, 3, time.Minute)
	for _, one := range []*process{p, other} {
		one.Retention.Set(job.RetentionPolicies{Default: job.Retention{Canceled: new(time.Hour)}})
	}
	await(t, func() bool { return ask[int](t, db, "select count(*) from jobs") == len(young) })
	for _, id := range young {
		require.Equal(t, job.Canceled, view(t, db, id).State)
	}
	await(t, func() bool { return counts.of("holdfast.retention.jobs")["deleted canceled"] == 20 })
	policies, plan, err := p.PlanRetention(t.Context())
	require.NoError(t, err)
	require.Equal(t, time.Hour, *policies.Default.Canceled)
	require.Len(t, plan.Groups, 1)
	require.Equal(t, job.FateYoung, plan.Groups[0].Fate)
	requireSettled(t, db)
}

// A process that has asked for an erasure ends before any of it is done.
func TestAnErasureIsTakenOnByAnotherOrchestrator(t *testing.T) {
	t.Parallel()
	db := fresh(t)
	ids := ended(t, db, 5, time.Minute, func(s *job.Submission) { s.Tenant = "acme" })
	asked, err := db.AskErasure(t.Context(), job.Erasure{ID: submission(t).ID, Tenant: "acme", Reason: "why", By: "token ops"})
	require.NoError(t, err)
	measured, counts := metered(t)
	p := launch(t, db, supervise(t), measured)
	await(t, func() bool {
		found, err := p.Erasures(t.Context(), job.ErasureFilter{ID: asked.ID, Limit: 1})
		require.NoError(t, err)
		return found[0].FinishedAt != nil && found[0].Erased == int64(len(ids))
	})
	for _, id := range ids {
		require.NotNil(t, view(t, db, id).ErasedAt)
	}
	await(t, func() bool { return counts.of("holdfast.retention.jobs")["erased canceled"] == 5 })

	// A second one is done at once: this process was asked.
	one := ended(t, db, 1, time.Minute, func(s *job.Submission) { s.Tenant = "globex" })[0]
	_, err = p.AskErasure(t.Context(), job.Erasure{ID: submission(t).ID, Tenant: "globex"})
	require.NoError(t, err)
	await(t, func() bool { return view(t, db, one).ErasedAt != nil })
}
