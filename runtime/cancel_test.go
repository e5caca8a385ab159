package runtime_test

import (
	"context"
	"errors"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/holdfast-jobs/holdfast/runtime/job"
)

func TestACanceledJobEndsTheWayItsHandlerEnds(t *testing.T) {
	t.Parallel()
	whenAsked := func(end script) script {
		return func(r *run) job.Outcome {
			<-r.stopped
			return end(r)
		}
	}
	retryLater := time.Minute
	for name, c := range map[string]struct {
		play script
		want job.State
	}{
		"it stops":             {stops, job.Canceled},
		"it fails":             {whenAsked(fails), job.Canceled},
		"it fails for good":    {whenAsked(ending(job.Outcome{Kind: job.PermanentFailure})), job.Canceled},
		"it snoozes":           {whenAsked(ending(job.Outcome{Kind: job.Snoozed, RetryAfter: &retryLater})), job.Canceled},
		"it has to be killed":  {clings, job.Canceled},
		"it succeeds after it": {whenAsked(succeeds), job.Succeeded},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			db := fresh(t)
			id := given(t, db)
			s := supervise(t, playing("p", 1, c.play, echo))
			ledger, beats := counted(db)
			p := launch(t, ledger, s, leasing(aLongTime)) // no heartbeat comes by itself
			r := awaitRun(t, s, 1)
			await(t, func() bool { return beats.Load() > 0 }, "but for the one when hints are listened for")
			v, err := db.Cancel(t.Context(), id)
			require.NoError(t, err)
			require.Equal(t, job.Running, v.State)
			p.CancelAsked()
			awaitState(t, db, id, c.want)
			require.Equal(t, []job.CancelReason{job.CancelRequested}, r.told())
			want := job.CancelConfirmed
			if c.want == job.Succeeded {
				want = job.Success
			}
			require.Equal(t, []job.OutcomeKind{want}, outcomes(t, db, id))
			requireSettled(t, db)
		})
	}
}

// counted counts the heartbeats.
func counted(db *database) (ledger *hooked, beats *atomic.Int32) {
	beats = new(atomic.Int32)
	return &hooked{Store: db, renew: func(ctx context.Context, renew renewal) ([]job.Renewed, error) {
		defer beats.Add(1)
		return renew(ctx)
	}}, beats
}

func TestACancelReachesAJobThatRunsElsewhere(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		listen func() error
		lease  time.Duration
	}{
		"by a hint":      {nil, aLongTime},
		"by a heartbeat": {func() error { return errors.New("not through this pooler") }, 30 * time.Second},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			db := fresh(t)
			id := given(t, db)
			s := supervise(t, playing("p", 1, stops, echo))
			ledger, beats := counted(db)
			ledger.listen = c.listen
			launch(t, ledger, s, leasing(c.lease))
			front := launch(t, openAt(t, db.url), supervise(t))
			r := awaitRun(t, s, 1)
			await(t, func() bool { return beats.Load() > 0 })
			_, err := db.Cancel(t.Context(), id)
			require.NoError(t, err)
			front.CancelAsked()
			awaitState(t, db, id, job.Canceled)
			require.Equal(t, []job.CancelReason{job.CancelRequested}, r.told())
		})
	}
}

// The cancel comes while the outcome is on its way: the settlement is refused
// and decided anew.
func TestACanceledJobWhoseHandlerFailsIsStillCanceled(t *testing.T) {
	t.Parallel()
	for name, kind := range map[string]job.OutcomeKind{"a retry": job.Failure, "a give-back": job.Released, "a death": job.PermanentFailure} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			db := fresh(t)
			id := given(t, db)
			asked := false
			ledger := &hooked{Store: db, settle: func([]job.Settlement) {
				if asked {
					return
				}
				asked = true
				_, err := db.Cancel(t.Context(), id)
				require.NoError(t, err)
			}}
			launch(t, ledger, supervise(t, playing("p", 1, ending(job.Outcome{Kind: kind}), echo)), leasing(aLongTime))
			awaitState(t, db, id, job.Canceled)
			require.Equal(t, []job.OutcomeKind{job.CancelConfirmed}, outcomes(t, db, id))
			requireSettled(t, db)
		})
	}
}
