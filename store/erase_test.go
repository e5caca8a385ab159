package store

import (
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/jackc/pgx/v5/pgtype"
	"github.com/stretchr/testify/require"

	"github.com/holdfast-jobs/holdfast/runtime/job"
	"github.com/holdfast-jobs/holdfast/store/postgres"
	"github.com/holdfast-jobs/holdfast/store/sql"
)

// secrets counts the places where a job still has something of its content.
func secrets(t testing.TB, s *Store, id job.ID) int {
	t.Helper()
	return ask[int](t, s, `
		select (select count(*) from jobs j where j.job_id = $1 and (j.payload::text <> 'null' or j.result is not null or j.progress is not null
				or j.checkpoint is not null or j.last_error is not null or j.tags <> '{}' or j.trace_state <> '' or j.request_hash <> '' or j.callback_url is not null))
			+ (select count(*) from unsuccessful_attempts a where a.job_id = $1 and (a.error is not null or a.stack is not null or a.error_code is not null))
			+ (select count(*) from attempt_logs l where l.job_id = $1)`, postgres.UUID(id))
}

func TestAnErasedJobIsOnlyARecord(t *testing.T) {
	for _, state := range []job.State{job.Succeeded, job.Dead, job.Canceled} {
		t.Run(string(state), func(t *testing.T) {
			s := open(t)
			p := &past{State: state, Created: time.Hour, Finished: time.Minute, Attempts: 2, Key: "key"}
			write(t, s, p)
			exec(t, s, "update jobs set callback_url = 'https://example.com/secret', followed = true")
			require.NotZero(t, secrets(t, s, p.ID))
			view, err := s.Erase(t.Context(), p.ID, "token ops", "ticket 4711")
			require.NoError(t, err)
			require.NotNil(t, view.ErasedAt)
			require.Equal(t, state, view.State)
			require.Zero(t, secrets(t, s, p.ID))
			require.Equal(t, 2, ask[int](t, s, "select count(*) from unsuccessful_attempts where outcome = 'failed'"), "the outcomes stay")
			require.Equal(t, fmt.Sprintf("token ops/job.erase/default/%s/1/ticket 4711", p.ID),
				ask[string](t, s, "select concat_ws('/', actor, action, tenant, job_id, count, reason) from audit_log"))

			again, err := s.Erase(t.Context(), p.ID, "token ops", "again")
			require.NoError(t, err)
			require.Equal(t, view.ErasedAt, again.ErasedAt)
			require.Equal(t, 1, ask[int](t, s, "select count(*) from audit_log"), "nothing was done")
			requireSound(t, s)
		})
	}
}

// The payload of a delivery has the result of the job.
func TestTheDeliveriesOfAnErasedJobAreErased(t *testing.T) {
	s := open(t)
	done := as(running(t, s, calledBack), job.Success)
	done.Result = json.RawMessage(`"secret"`)
	settle(t, s, done)
	followAs(t, s, job.FollowPlan{Deliveries: deliveries()})
	child := ask[job.ID](t, s, "select job_id from jobs where parent_id = $1", postgres.UUID(done.JobID))
	_, err := s.Erase(t.Context(), done.JobID, "token ops", "")
	require.NoError(t, err)
	require.Nil(t, get(t, s, child).ErasedAt, "it is still to be made")
	require.Contains(t, row(t, s, child), "secret")

	_, err = s.Cancel(t.Context(), child)
	require.NoError(t, err)
	other := &past{State: job.Succeeded, Created: time.Hour}
	write(t, s, other)
	exec(t, s, "update jobs set parent_id = $1 where job_id = $2", postgres.UUID(done.JobID), postgres.UUID(other.ID))
	_, err = s.Erase(t.Context(), done.JobID, "token ops", "")
	require.NoError(t, err)
	require.Zero(t, secrets(t, s, child))
	require.NotContains(t, row(t, s, child), "secret")
	require.Nil(t, get(t, s, other.ID).ErasedAt, "a job of its own")
	require.Equal(t, 1, ask[int](t, s, "select count(*) from audit_log where job_id = $1 and actor = 'token ops'", postgres.UUID(child)))
	requireSound(t, s)
}

// The client has asked to be forgotten, and so has its receiver.
func TestTheEndOfAnErasedJobIsNeverAnnounced(t *testing.T) {
	for name, undelivered := range map[string]bool{"in the inbox": false, "not delivered": true} {
		t.Run(name, func(t *testing.T) {
			s := open(t)
			c := running(t, s, calledBack)
			settled(t, s, c, job.Success)
			if undelivered {
				followAs(t, s, job.FollowPlan{})
				exec(t, s, "update undelivered set tried_at = now() - interval '1 hour'")
			}
			_, err := s.Erase(t.Context(), c.JobID, "ops", "")
			require.NoError(t, err)
			require.Zero(t, secrets(t, s, c.JobID))
			require.Zero(t, followAs(t, s, job.FollowPlan{Deliveries: deliveries()}).Delivered)
			done, err := s.Redeliver(t.Context(), deliveries())
			require.NoError(t, err)
			require.Zero(t, done)
			require.Zero(t, ask[int](t, s, "select count(*) from undelivered"))
		})
	}
}

func TestATenantsErasureCountsADeliveryThatWasMadeMeanwhile(t *testing.T) {
	s := open(t)
	settled(t, s, running(t, s, calledBack, func(j *job.Submission) { j.Tenant = "acme" }), job.Success)
	asked, err := s.AskErasure(t.Context(), job.Erasure{ID: newID(t), Tenant: "acme"})
	require.NoError(t, err)
	followAs(t, s, job.FollowPlan{Deliveries: deliveries()})
	for more := true; more; {
		_, more, err = s.EraseNext(t.Context(), 100)
		require.NoError(t, err)
	}
	found, err := s.Erasures(t.Context(), job.ErasureFilter{ID: asked.ID, Limit: 1})
	require.NoError(t, err)
	require.EqualValues(t, 1, found[0].Erased)
	require.EqualValues(t, 1, found[0].Open, "it has the result")
}

// Either the erasure sees the delivery, or the delivery is not made.
func TestAnErasureWaitsForADeliveryThatIsBeingMade(t *testing.T) {
	s := open(t)
	c := running(t, s, calledBack)
	settled(t, s, c, job.Success)
	release := locked(t, s, sql.Text("callbacks"), []pgtype.UUID{postgres.UUID(c.JobID)}, job.MaxDelivered)
	wait := after(func() error { _, err := s.Erase(t.Context(), c.JobID, "", ""); return err })
	awaitBlocked(t, s, 1)
	release()
	require.NoError(t, wait())
	require.Zero(t, secrets(t, s, c.JobID))
}

func TestAnOpenJobIsNotErased(t *testing.T) {
	for _, state := range []job.State{job.Created, job.Queued, job.Running, job.Retry} {
		t.Run(string(state), func(t *testing.T) {
			s := open(t)
			p := &past{State: state, Created: time.Hour}
			write(t, s, p)
			before := row(t, s, p.ID)
			_, err := s.Erase(t.Context(), p.ID, "", "")
			require.ErrorIs(t, err, job.ErrWrongState)
			require.Equal(t, before, row(t, s, p.ID))
			require.Zero(t, ask[int](t, s, "select count(*) from audit_log"))
		})
	}
	_, err := open(t).Erase(t.Context(), newID(t), "", "")
	require.ErrorIs(t, err, job.ErrNotFound)
}

func TestAnErasedDeadJobIsNotRequeued(t *testing.T) {
	s := open(t)
	erased, other := &past{State: job.Dead, Created: time.Hour, Finished: 2 * time.Minute}, &past{State: job.Dead, Created: time.Hour, Finished: time.Minute}
	write(t, s, erased, other)
	_, err := s.Erase(t.Context(), erased.ID, "", "")
	require.NoError(t, err)
	_, err = s.Requeue(t.Context(), erased.ID)
	require.ErrorIs(t, err, job.ErrErased)
	moved, err := s.Redrive(t.Context(), job.DeadLetterFilter{Limit: 10})
	require.NoError(t, err)
	require.Len(t, moved, 1)
	require.Equal(t, other.ID, moved[0].ID)
	letters, err := s.DeadLetters(t.Context(), job.DeadLetterFilter{Limit: 10})
	require.NoError(t, err)
	require.Len(t, letters, 1)
	require.True(t, letters[0].Erased)
	requireSound(t, s)
}

// An erasure that waits for a requeue finds a job that has not ended.
func TestAnErasureAndARequeueExcludeEachOther(t *testing.T) {
	for _, first := range []string{"requeue", "erase"} {
		t.Run(first, func(t *testing.T) {
			s := open(t)
			p := &past{State: job.Dead, Created: time.Hour, Finished: time.Minute}
			write(t, s, p)
			release := locked(t, s, "select from dead_letters where job_id = $1 for update", postgres.UUID(p.ID))
			requeue := func() error { _, err := s.Requeue(t.Context(), p.ID); return err }
			erase := func() error { _, err := s.Erase(t.Context(), p.ID, "", ""); return err }
			if first == "erase" {
				requeue, erase = erase, requeue
			}
			wait := after(requeue)
			awaitBlocked(t, s, 1)
			second := after(erase)
			awaitBlocked(t, s, 2)
			release()
			require.NoError(t, wait())
			require.Error(t, second())
			if first == "requeue" {
				requireState(t, s, p.ID, job.Queued)
				require.Contains(t, row(t, s, p.ID), "secret")
			} else {
				requireState(t, s, p.ID, job.Dead)
				require.Zero(t, secrets(t, s, p.ID))
			}
		})
	}
}

// Whatever is sent with the key of an erased job finds that job.
func TestTheKeyOfAnErasedJobStillMakesNoSecondJob(t *testing.T) {
	s := open(t)
	one := submission(t, func(s *job.Submission) { s.IdempotencyKey = "order-1" })
	submit(t, s, one)
	_, err := s.Cancel(t.Context(), one.ID)
	require.NoError(t, err)
	_, err = s.Erase(t.Context(), one.ID, "", "")
	require.NoError(t, err)
	for _, payload := range []string{string(one.Payload), `{"n": 2}`} {
		again := submission(t, func(s *job.Submission) { s.IdempotencyKey, s.Payload = "order-1", []byte(payload) })
		done := s.Submit(t.Context(), []job.Submission{again})
		require.NoError(t, done[0].Err)
		require.Equal(t, one.ID, done[0].Receipt.ID)
		known, err := s.Known(t.Context(), again)
		require.NoError(t, err)
		require.True(t, known)
	}
}

// However often whoever erases is killed, exactly the ended jobs of the tenant are erased.
func TestATenantIsErasedWholly(t *testing.T) {
	for _, tenant := range []string{"tenant 1", job.DefaultTenant} {
		t.Run(tenant, func(t *testing.T) {
			s := open(t)
			r := rand.New(rand.NewPCG(1, 1))
			jobs := randomJobs(r, 400)
			write(t, s, jobs...)
			asked, err := s.AskErasure(t.Context(), job.Erasure{ID: newID(t), Tenant: tenant, Reason: "why", By: "token ops"})
			require.NoError(t, err)
			require.Nil(t, asked.FinishedAt)
			late := &past{Tenant: tenant, State: job.Succeeded, Created: -time.Second}
			write(t, s, late)
			done := []job.Erasure{asked}
			for portions := 0; done[0].FinishedAt == nil; portions++ {
				if portions%3 == 1 { // a portion that is not committed
					killed := openAt(t, urlOf(s))
					release := locked(t, s, "lock table erasures in share mode")
					wait := after(func() error { _, _, err := killed.EraseNext(t.Context(), 7); return err })
					awaitBlocked(t, s, 1)
					exec(t, s, "select pg_terminate_backend(pid) from pg_stat_activity where datname = current_database() and wait_event_type = 'Lock'")
					require.Error(t, wait())
					release()
					killed.Close() // a hundred connections are all that the server has
				}
				_, _, err = s.EraseNext(t.Context(), 7)
				require.NoError(t, err)
				done, err = s.Erasures(t.Context(), job.ErasureFilter{ID: asked.ID, Limit: 1})
				require.NoError(t, err)
			}
			var ended, open int64
			for _, p := range jobs {
				switch {
				case p.Tenant != tenant:
					require.NotContains(t, row(t, s, p.ID), `null,`, "of another tenant")
					require.Nil(t, get(t, s, p.ID).ErasedAt)
				case p.State.Final():
					require.Zero(t, secrets(t, s, p.ID))
					ended++
				default:
					require.Nil(t, get(t, s, p.ID).ErasedAt)
					open++
				}
			}
			require.Nil(t, get(t, s, late.ID).ErasedAt, "made after the request")
			require.Equal(t, ended, done[0].Erased)
			require.Equal(t, open, done[0].Open)
			require.NotZero(t, ended)
			require.Equal(t, []string{"asked", fmt.Sprintf("finished, except for %d open jobs", open)},
				ask[[]string](t, s, "select array_agg(result order by audit_id) from audit_log where action = 'tenant.erase' and tenant = $1 and actor = 'token ops' and reason = 'why'", tenant))
			requireSound(t, s)
		})
	}
}
