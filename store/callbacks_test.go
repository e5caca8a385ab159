package store

import (
	"context"
	"encoding/json"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	v1 "github.com/holdfast-jobs/holdfast/api/v1"
	"github.com/holdfast-jobs/holdfast/runtime/job"
	"github.com/holdfast-jobs/holdfast/store/postgres"
	"github.com/holdfast-jobs/holdfast/store/sql"
)

const hook = "https://example.com/hook"

// calledBack gives a submission a callback URL.
func calledBack(s *job.Submission) {
	s.CallbackURL, s.Followed = hook, true
	s.Trace.Parent = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01"
}

func deliveries() job.DeliveryPlan {
	return job.DeliveryPlan{Type: &job.TypeSpec{Type: job.DeliveryType, MaxAttempts: 7, Timeout: 9 * time.Second}}
}

func followAs(t testing.TB, s *Store, plan job.FollowPlan) job.Following {
	t.Helper()
	done, err := s.Follow(t.Context(), plan)
	require.NoError(t, err)
	return done
}

// sent are the payloads of all deliveries, in the order in which they were made.
func sent(t testing.TB, s *Store) (all []v1.Webhook) {
	t.Helper()
	rows, err := s.db.Worker.Query(t.Context(), "select payload::text from jobs where job_type = 'WEBHOOK' order by created_at, payload -> 'event' ->> 'timestamp'")
	require.NoError(t, err)
	defer rows.Close()
	for rows.Next() {
		var text string
		require.NoError(t, rows.Scan(&text))
		var payload v1.Delivery
		require.NoError(t, json.Unmarshal([]byte(text), &payload))
		require.Equal(t, hook, payload.URL)
		var event v1.Webhook
		require.NoError(t, json.Unmarshal(payload.Event, &event))
		all = append(all, event)
	}
	return all
}

func TestTheEndOfAJobIsAnnouncedByAJob(t *testing.T) {
	s := open(t)
	settled(t, s, running(t, s), job.Success)
	c := running(t, s, calledBack, func(j *job.Submission) { j.Tenant, j.Tags = "acme", []string{"blue"} })
	require.Zero(t, followAs(t, s, job.FollowPlan{Deliveries: deliveries()}).Delivered, "nothing has ended")
	success := as(c, job.Success)
	success.Result = json.RawMessage(`{"n": "<1>"}`)
	settle(t, s, success)
	done := followAs(t, s, job.FollowPlan{Deliveries: deliveries()})
	require.Equal(t, job.Delivered{Jobs: 1, Ready: true}, done.Delivered)

	id := ask[job.ID](t, s, "select job_id from jobs where parent_id = $1", postgres.UUID(c.JobID))
	detail, err := s.Detail(t.Context(), id)
	require.NoError(t, err)
	require.Equal(t, job.DeliveryType, detail.Type)
	require.Equal(t, "acme", detail.Tenant)
	require.Equal(t, job.Queued, detail.State)
	require.Equal(t, 7, detail.MaxAttempts)
	require.Equal(t, 9*time.Second, detail.Timeout)
	require.Equal(t, "0af7651916cd43dd8448eb211c80319c", detail.Trace.ID(), "it is part of the job's trace")
	require.Equal(t, 1, ask[int](t, s, "select count(*) from jobs where job_type = 'WEBHOOK' and followed is null and callback_url is null"))

	event := sent(t, s)[0]
	ended := get(t, s, c.JobID)
	require.Equal(t, "job.succeeded", event.Type)
	require.True(t, ended.FinishedAt.Equal(event.Timestamp))
	require.Equal(t, "acme", event.Data.Tenant)
	require.JSONEq(t, `{"n": "<1>"}`, string(event.Data.Result))
	event.Data.Result = ended.Result
	require.Equal(t, v1.JobOf(ended), event.Data.Job, "as the client would see it")
	require.Zero(t, followAs(t, s, job.FollowPlan{Deliveries: deliveries()}).Delivered, "once")
	requireSound(t, s)
}

func TestEveryEndOfARequeuedJobIsAnnouncedAsItWas(t *testing.T) {
	s := open(t)
	c := running(t, s, calledBack)
	settled(t, s, c, job.PermanentFailure)
	died := *get(t, s, c.JobID).FinishedAt
	_, err := s.Requeue(t.Context(), c.JobID)
	require.NoError(t, err)
	s.marks = newLowWaterMarks()
	again := as(claim(t, s, 1)[0], job.Success)
	again.Result = json.RawMessage(`1`)
	settle(t, s, again)
	require.Equal(t, 2, followAs(t, s, job.FollowPlan{Deliveries: deliveries()}).Delivered.Jobs)
	events := sent(t, s)
	require.Equal(t, "job.dead", events[0].Type)
	require.Equal(t, job.StatusFailed, events[0].Data.Status)
	require.True(t, died.Equal(*events[0].Data.FinishedAt))
	require.Nil(t, events[0].Data.Result, "it is of a later attempt")
	require.Equal(t, "job.succeeded", events[1].Type)
	require.Equal(t, "1", string(events[1].Data.Result))
}

func TestALargeResultIsLeftOut(t *testing.T) {
	s := open(t)
	for size, omitted := range map[int]bool{job.MaxDelivered: false, job.MaxDelivered + 1: true} {
		success := as(running(t, s, calledBack), job.Success)
		success.Result = json.RawMessage(`"` + strings.Repeat("x", size-2) + `"`)
		settle(t, s, success)
		followAs(t, s, job.FollowPlan{Deliveries: deliveries()})
		events := sent(t, s)
		event := events[len(events)-1].Data
		require.Equal(t, omitted, event.ResultOmitted)
		require.Equal(t, omitted, event.Result == nil)
	}
}

func TestADeliveryPassesTheGatesOfItsTypeAndTenant(t *testing.T) {
	s := open(t)
	plan := deliveries()
	one := 1
	plan.Rules = job.NewRules([]job.Limit{{Scope: job.LimitType, Name: job.DeliveryType, Concurrency: &one}}, nil)
	settled(t, s, running(t, s, calledBack), job.Success)
	require.Equal(t, job.Delivered{Jobs: 1, Parked: true}, followAs(t, s, job.FollowPlan{Deliveries: plan}).Delivered)
	require.Equal(t, "type:WEBHOOK", ask[string](t, s, "select lane from parked"))
}

func TestWhatCannotBeAnnouncedDelaysNothingAndIsTriedAgain(t *testing.T) {
	s := open(t)
	settled(t, s, running(t, s, calledBack), job.Success)
	settled(t, s, running(t, s, followed), job.Success)
	done := followAs(t, s, job.FollowPlan{})
	require.Len(t, done.Ended, 2)
	require.Equal(t, job.Delivered{Failed: 1, Reason: "no plugin has ever declared the job type WEBHOOK"}, done.Delivered)
	require.Zero(t, ends(t, s))

	redeliver := func(plan job.DeliveryPlan) job.Delivered {
		t.Helper()
		done, err := s.Redeliver(t.Context(), plan)
		require.NoError(t, err)
		return done
	}
	require.Zero(t, redeliver(deliveries()), "too early")
	long := func() { exec(t, s, "update undelivered set tried_at = now() - interval '1 hour'") }
	long()
	require.Equal(t, 1, redeliver(job.DeliveryPlan{}).Failed)
	long()
	require.Equal(t, job.Delivered{Jobs: 1, Ready: true}, redeliver(deliveries()))
	require.Equal(t, "job.succeeded", sent(t, s)[0].Type)
	require.Zero(t, ask[int](t, s, "select count(*) from undelivered"))
}

func TestADeliveryThatTheDatabaseRefusesDelaysNoOther(t *testing.T) {
	s := open(t)
	var refused job.ID
	for i := range 5 {
		c := running(t, s, calledBack)
		settled(t, s, c, job.Success)
		if i == 3 {
			refused = c.JobID
		}
	}
	exec(t, s, `create function refuse() returns trigger language plpgsql as $$ begin
		if new.job_type = 'WEBHOOK' and new.parent_id = '`+refused.String()+`' then raise exception using errcode = '22021'; end if;
		return new;
	end $$`)
	exec(t, s, "create trigger refuse before insert on jobs for each row execute function refuse()")
	done := followAs(t, s, job.FollowPlan{Deliveries: deliveries()}).Delivered
	require.Equal(t, job.Delivered{Jobs: 4, Ready: true, Failed: 1, Reason: "the database cannot store the delivery"}, done)
	require.Equal(t, refused, ask[job.ID](t, s, "select job_id from undelivered"))

	again := func(since string) job.Delivered {
		t.Helper()
		exec(t, s, "update undelivered set tried_at = now() - interval '1 hour', since = now() - $1::text::interval", since)
		done, err := s.Redeliver(t.Context(), deliveries())
		require.NoError(t, err)
		return done
	}
	require.Equal(t, job.Delivered{Failed: 1, Reason: "the database cannot store the delivery"}, again("23 hours"))
	require.Equal(t, job.Delivered{GivenUp: 1, Reason: "the database cannot store the delivery"}, again("25 hours"))
	require.Zero(t, again("26 hours"), "never again")
	require.Equal(t, refused, ask[job.ID](t, s, "select job_id from undelivered where given_up_at is not null"), "it can be seen")
	requireSound(t, s)
}

// A crash between the drain and the delivery undoes both.
func TestAFollowerThatDiesInARoundLosesAndDoublesNothing(t *testing.T) {
	s := open(t)
	settled(t, s, running(t, s, calledBack), job.Success)
	exec(t, s, "create table barrier_of_the_test (id int)")
	exec(t, s, `create function wait_here() returns trigger language plpgsql as $$ begin
		if new.job_type = 'WEBHOOK' then perform from barrier_of_the_test; end if; return new; end $$`)
	exec(t, s, "create trigger wait_here before insert on jobs for each row execute function wait_here()")
	for range 3 {
		commit := locked(t, s, "lock table barrier_of_the_test in access exclusive mode")
		failed := after(func() error { _, err := s.Follow(t.Context(), job.FollowPlan{Deliveries: deliveries()}); return err })
		awaitBlocked(t, s, 1)
		require.Equal(t, 1, ask[int](t, s, `select count(pg_terminate_backend(pid)) from pg_stat_activity
			where wait_event_type = 'Lock' and query like '-- Submit jobs%' and datname = current_database()`))
		require.Error(t, failed())
		commit()
		require.Equal(t, 1, ends(t, s))
		require.Empty(t, sent(t, s))
	}
	require.Equal(t, 1, followAs(t, s, job.FollowPlan{Deliveries: deliveries()}).Delivered.Jobs)
	require.Len(t, sent(t, s), 1)
}

func TestTwoFollowersAnnounceAnEndOnce(t *testing.T) {
	s := open(t)
	const n = 20
	for range n {
		settled(t, s, running(t, s, calledBack), job.Success)
	}
	commit := locked(t, s, sql.Text("lock_following"))
	var rounds []func() int
	for range 3 {
		rounds = append(rounds, after(func() int {
			done, err := s.Follow(context.Background(), job.FollowPlan{Deliveries: deliveries()})
			if err != nil {
				t.Error(err)
			}
			return done.Delivered.Jobs
		}))
	}
	awaitBlocked(t, s, 3)
	commit()
	total := 0
	for _, wait := range rounds {
		total += wait()
	}
	require.Equal(t, n, total)
	require.Len(t, sent(t, s), n)
}
