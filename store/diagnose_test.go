package store

import (
	"context"
	"fmt"
	"net/url"
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/stretchr/testify/require"

	"github.com/holdfast-jobs/holdfast/runtime/job"
)

// diagnose returns the checks by name. Some fail on the tests' own server, because of
// its settings.
func diagnose(t testing.TB, s *Store) map[string]job.Check {
	t.Helper()
	found, err := s.Diagnose(t.Context())
	require.NoError(t, err)
	require.Len(t, found, 23)
	checks := make(map[string]job.Check)
	for _, check := range found {
		require.NotEmpty(t, check.Summary, check.Name)
		require.Equal(t, check.Severity == job.Fine, check.Remedy == "", "%+v", check)
		require.LessOrEqual(t, len(check.Details), 11)
		checks[check.Name] = check
	}
	return checks
}

// sound is a store with jobs in many states and nothing wrong.
func sound(t testing.TB) *Store {
	t.Helper()
	s := open(t)
	serving(t, s, worker, time.Hour, jobType, "QUEUED")
	for _, state := range job.States() {
		inState(t, s, state)
	}
	given(t, s)
	return s
}

func TestADiagnosisFindsNothingWhereNothingIsWrong(t *testing.T) {
	checks := diagnose(t, sound(t))
	delete(checks, "server_settings") // those of the tests' server
	for name, check := range checks {
		require.Equal(t, job.Fine, check.Severity, "%s: %+v", name, check)
	}
	require.Contains(t, checks["schema_version"].Summary, "The schema has version ")
}

func TestADiagnosisFindsWhatIsWrong(t *testing.T) {
	const long = "interval '2 minutes'"
	schemaVersion := ask[int](t, open(t), "select max(version_id) from goose_db_version")
	for name, c := range map[string]struct {
		check    string
		severity job.Severity
		harm     []string
		detail   string
		summary  string
	}{
		"a list without its job": {
			"ledger_and_lists", job.Problem,
			[]string{"delete from ready where job_type = 'QUEUED'"},
			"state queued, list none", "The ledger and the list of 1 job disagree.",
		},
		"a job whose expiry was lost": {
			"ledger_and_lists", job.Problem,
			[]string{"update jobs set expires_at = now() + interval '1 hour' where job_type = 'QUEUED'"},
			"state queued, list ready with another expires_at", "The ledger and the list of 1 job disagree.",
		},
		"a list with another due time": {
			"ledger_and_lists", job.Problem,
			[]string{"update ready set run_at = run_at - interval '1 hour' where job_type = 'QUEUED'"},
			"state queued, list ready with another run_at", "",
		},
		"a list with another type": {
			"ledger_and_lists", job.Problem,
			[]string{"update ready set job_type = 'OTHER' where job_type = 'QUEUED'"},
			"state queued, list ready with another job_type", "",
		},
		"a timer that never goes off": {
			"ledger_and_lists", job.Problem,
			[]string{"update timers set run_at = 'infinity' where state = 'retry'"},
			"state retry, list timers with another run_at", "",
		},
		"a timer of another state and attempt": {
			"ledger_and_lists", job.Problem,
			[]string{"update timers set state = 'retry', attempt = 3 where state = 'created'"},
			"state created, list timers with another state, attempt", "",
		},
		"many lists without jobs": {
			"ledger_and_lists", job.Problem,
			[]string{"insert into timers select gen_random_uuid(), now() from generate_series(1, 20)"},
			"state absent, list timers", "The ledger and the list of more than 10 jobs disagree.",
		},
		"a job that runs and waits at once": {
			"ledger_and_lists", job.Problem,
			[]string{"insert into ready select job_id, job_type, -priority, run_at from jobs join leases using (job_id)"},
			"state running, list ready", "The ledger and the list of 1 job disagree.",
		},
		"a lease that nobody took over": {
			"leases", job.Problem,
			[]string{"update leases set expires_at = now() - " + long},
			"1 lease expired more than a minute ago and not taken over, such as that of job ", "Something is wrong with 1 lease.",
		},
		"a kept lease that nobody took over": {
			"leases", job.Problem,
			[]string{"update leases set kept = true, claimed_at = now() - " + long, "delete from workers"},
			"1 lease expired more than a minute ago and not taken over, such as that of job ", "",
		},
		"a lease of nobody": {
			"leases", job.Warning,
			[]string{"update leases set claimed_at = now() - " + long, "delete from workers"},
			"1 lease of an unknown worker", "",
		},
		"a lease of somebody who has left": {
			"leases", job.Warning,
			[]string{"update workers set stopped_at = now() - " + long},
			"1 lease of a worker that has signed off", "",
		},
		"a lease of another run": {
			"leases", job.Problem, []string{"update leases set fence = 99"}, "1 lease with another fence than its job", "",
		},
		"a worker that has just fallen silent": {
			"silent_workers", job.Warning,
			[]string{"update workers set alive_until = now()"},
			worker + ": silent for ", "1 worker stopped sending heartbeats while holding 1 job.",
		},
		"nobody who maintains": {
			"roles", job.Problem,
			[]string{"update workers set roles = '{api,worker}'"},
			"maintenance: no live process as far as is known, so jobs that become due are not queued", "No live process has the role maintenance.",
		},
		"nobody who maintains any more": {
			"roles", job.Problem,
			[]string{
				"update workers set roles = '{api,worker}'",
				"insert into workers (worker_id, alive_until, host, pid, pid_started) values ('gone', now() - " + long + ", 'h', 1, 1)",
			},
			"maintenance: no live process for 2m0s", "",
		},
		"nobody who runs jobs for a moment": {
			"roles", job.Warning,
			[]string{"update workers set stopped_at = now() where 'worker' = any(roles)", "insert into workers (worker_id, alive_until, host, pid, pid_started, roles) values ('new', now() + " + long + ", 'h', 1, 1, '{api,maintenance}')"},
			"worker: no live process for ", "No live process has the role worker.",
		},
		"nobody who serves the API": {
			"roles", job.Warning,
			[]string{"update workers set roles = '{worker,maintenance}'"},
			"api: no live process as far as is known, so nobody serves the API", "",
		},
		"a silent worker whose jobs nobody takes over": {
			"silent_workers", job.Problem, []string{"update workers set alive_until = now() - " + long}, worker + ": silent for 2m0s", "",
		},
		"a type that nobody serves": {
			"unserved_types", job.Warning,
			[]string{"update ready set job_type = 'UNKNOWN', run_at = now() - " + long + " where job_type = 'QUEUED'"},
			"UNKNOWN: 1 job, the oldest for 2m0s", "Jobs of 1 type are waiting that no live worker serves, the oldest for 2m0s.",
		},
		"a type at a gate that nobody serves": {
			"unserved_types", job.Warning,
			[]string{
				"insert into parked (job_id, lane, urgency, position, job_type, tenant, gates) " +
					"select gen_random_uuid(), 'type:UNKNOWN', 0, now() - " + long + ", 'UNKNOWN', 'default', '{type:UNKNOWN}'",
			},
			"UNKNOWN: 1 job, the oldest for 2m0s", "Jobs of 1 type are waiting that no live worker serves, the oldest for 2m0s.",
		},
		"types that nobody has served for long": {
			"unserved_types", job.Problem,
			[]string{"delete from workers", "update ready set run_at = now() - interval '3 hours'"},
			"QUEUED: 1 job, the oldest for 3h0m0s", "Jobs of 2 types are waiting",
		},
		"slots that nobody holds": {
			"slots", job.Problem,
			[]string{
				"update jobs set gates = '{fair:default/, type:ECHO}' where job_id in (select job_id from leases)",
				"insert into wakes (gates, freed) values ('{type:ECHO,new:default/x}', true), ('{type:ECHO}', false)",
				"insert into slots (gate, used) values ('type:ECHO', 3), ('key:default/a', 0)",
			},
			"[type:ECHO: 3 counted, 2 held: nobody holds 1 slot]", "The used slots of 1 gate are counted wrong.",
		},
		"slots that are not counted": {
			"slots", job.Problem,
			[]string{"update jobs set gates = '{key:default/a,type:ECHO}' where job_id in (select job_id from ready) or job_id in (select job_id from leases)"},
			"key:default/a: 0 counted, 3 held: 3 slots too few", "The used slots of 2 gates are counted wrong.",
		},
		"a parked job that nothing keeps back": {
			"admission", job.Problem,
			append(parking("key:default/a", "2 minutes"), "insert into slots (gate, used) values ('key:default/a', 4)"),
			"key:default/a: nothing keeps back job", "Jobs of 1 lane wait although they may start.",
		},
		"a slot that nobody gets": {
			"admission", job.Problem,
			append(parking("key:default/a:b", "2 minutes"), "insert into slots (gate, used) values ('key:default/a:b', 4)",
				"insert into limits (scope, name, concurrency) values ('key', '*', 4), ('key', '', 4), ('key', 'a', 5)"),
			"parked 2m0s ago", "",
		},
		"a slot of a key without a colon": {
			"admission", job.Problem,
			append(parking("key:default/solo", "2 minutes"), "insert into slots (gate, used) values ('key:default/solo', 1)",
				"insert into limits (scope, name, concurrency) values ('key', '*', 1), ('key', 'solo', 2)"),
			"key:default/solo: nothing keeps back job", "",
		},
		"a tenant that is not paused any more": {
			"admission", job.Problem,
			append(parking("paused:default", "2 minutes"), "insert into pauses (scope, name, until) values ('tenant', 'default', now() - interval '1 minute')"),
			"paused:default: nothing keeps back job", "",
		},
		"a type that is not paused any more": {
			"admission", job.Problem,
			append(parking("stopped:ECHO", "2 minutes"), "insert into pauses (scope, name, until) values ('type', 'ECHO', now() - interval '1 minute')"),
			"stopped:ECHO: nothing keeps back job", "",
		},
		"a turn that nobody gives": {
			"admission", job.Problem, parking("fair:default/", "2 minutes"), "fair:default/: nothing keeps back job", "",
		},
		"a rate that nobody looks at": {
			"admission", job.Problem,
			append(parking("type:ECHO", "2 minutes"), "insert into slots (gate, tokens, wake_at) values ('type:ECHO', 0, now() - interval '90 seconds')"),
			"[type:ECHO: its rate should have been looked at 1m30s ago]", "Jobs of 1 lane wait although they may start.",
		},
		"ends that nobody looks at": {
			"following", job.Problem,
			[]string{"insert into ends values (gen_random_uuid(), 'dead', now() - interval '2 minutes'), (gen_random_uuid(), 'dead', now())"},
			"[the follower has not looked at 1 end, the oldest for 2m0s]", "Ends of jobs were not passed on.",
		},
		"ends that could not be announced": {
			"following", job.Problem,
			[]string{"insert into undelivered (job_id, state, at, reason) select gen_random_uuid(), 'dead', now() - i * interval '1 minute', 'no plugin' from generate_series(1, 3) i"},
			"[3 ends could not be announced, the oldest for 3m0s: no plugin]", "",
		},
		"ends that will never be announced": {
			"following", job.Warning,
			[]string{"insert into undelivered (job_id, state, at, reason, given_up_at) select gen_random_uuid(), 'dead', now() - interval '1 minute', 'refused', now()"},
			"[1 end will never be announced, the oldest for 1m0s: refused]", "",
		},
		"deliveries that have died": {
			"webhooks", job.Warning,
			[]string{`insert into dead_letters (job_id, job_type, dead_at) values (gen_random_uuid(), 'WEBHOOK', now() - interval '5 minutes'),
				(gen_random_uuid(), 'WEBHOOK', now() - interval '2 days'), (gen_random_uuid(), 'OTHER', now())`},
			"[1 webhook failed for good within a day, the latest 5m0s ago]", "Receivers of webhooks were not told.",
		},
		"schedules that make no jobs": {
			"schedules", job.Problem,
			[]string{`insert into schedules (tenant, name, every, job, next_at, last_error) values
				('acme', 'stuck', '1 hour', '{}', now() - interval '10 minutes', null),
				('acme', 'refused', '1 hour', '{}', now() + interval '10 minutes', '#/jobType no handler has declared this job type'),
				('acme', 'fine', '1 hour', '{}', now() + interval '10 minutes', null)`},
			"[acme/stuck: its tick should have been fired 10m0s ago acme/refused: its last tick could make no job: #/jobType no handler has declared this job type]",
			"2 schedules made no job when due.",
		},
		"pauses that were forgotten": {
			"pauses", job.Warning,
			[]string{`insert into pauses (scope, name, reason, paused_by, since, until) values
				('type', 'ECHO', 'migration', 'ann', now() - interval '25 hours', null),
				('tenant', 'acme', '', '', now() - interval '2 hours', null),
				('plugin', 'mail', 'why not', '', now() - interval '2 hours', null),
				('all', '', 'later', '', now() - interval '25 hours', now() + interval '1 hour'),
				('tenant', 'gone', '', '', now() - interval '25 hours', now())`},
			"[type ECHO: paused for 25h0m0s by ann (migration), without an end tenant acme: paused for 2h0m0s, without a reason]",
			"Somebody may have forgotten 2 pauses or limits.",
		},
		"a limit that lets nothing start": {
			"pauses", job.Warning,
			[]string{`insert into limits (scope, name, concurrency, updated_by, updated_at) values
				('type', 'ECHO', 0, 'ann', now() - interval '2 hours'), ('type', 'NEW', 0, 'ann', now() - interval '50 minutes'),
				('type', '*', 1, '', now() - interval '2 hours')`},
			"[limit of type ECHO: 0 for 2h0m0s by ann, so nothing of it starts]", "Somebody may have forgotten 1 pause or limit.",
		},
		"a schema that nobody made": {
			"schema_version", job.Problem, []string{"delete from goose_db_version"}, "", "No migration was applied to the database.",
		},
		"a schema that is old": {
			"schema_version", job.Problem,
			[]string{"delete from goose_db_version where version_id > 1"},
			"",
			fmt.Sprintf("The schema has version 1, and this program needs %d.", schemaVersion),
		},
		"a schema with a gap": {
			"schema_version", job.Problem,
			[]string{"delete from goose_db_version where version_id in (1, 3)"},
			"",
			fmt.Sprintf("The schema has version %d, but not 1, 3.", schemaVersion),
		},
		"a schema yet to come": {
			"schema_version", job.Warning,
			[]string{"insert into goose_db_version (version_id, is_applied) values (99, true)"},
			"",
			fmt.Sprintf("The schema has version 99, and this program knows %d.", schemaVersion),
		},
		"no trigger against illegal transitions": {
			"schema_version", job.Problem,
			[]string{"drop trigger jobs_legal_transition on jobs", "alter table jobs disable trigger jobs_legal_birth"},
			"the trigger jobs_legal_transition of jobs is missing or does not work",
			fmt.Sprintf("The schema has version %d, with 2 parts missing.", schemaVersion),
		},
		"no index against jobs made twice": {
			"schema_version", job.Problem,
			[]string{"drop index jobs_idempotency_key"},
			"the index jobs_idempotency_key of jobs is missing or does not work",
			fmt.Sprintf("The schema has version %d, with 1 part missing.", schemaVersion),
		},
		"a schema of unknown version": {
			"schema_version", job.Warning, []string{"drop table goose_db_version"}, "", "This check could not be made: relation \"goose_db_version\" does not exist.",
		},
		"a table that autovacuum leaves alone": {
			"statistics", job.Warning,
			[]string{"alter table jobs set (autovacuum_enabled = off)"},
			"jobs: autovacuum is off", "Autovacuum does not keep up with 1 table of ",
		},
		"a deleter that is gone": {
			"retention", job.Warning,
			[]string{`insert into retention (walk, policies, job_id, began_at, worker_id, worked_at, caught_up_at)
				values ('ended', '{"Default": {}}', gen_random_uuid(), now(), 'w', now() - interval '11 minutes', now())`},
			"nobody has deleted ended jobs for 11m0s", "Jobs that should be deleted or erased are still there.",
		},
		"a job that the deleter does not find": {
			"retention", job.Warning,
			[]string{
				`insert into retention (walk, policies, job_id, began_at, worker_id, worked_at, caught_up_at)
				select walk, '{"Default": {"Succeeded": 3600000000000, "Dead": null}, "Types": {"OTHER": {"Succeeded": 1}}}',
					gen_random_uuid(), now(), 'w', now(), now() from unnest(array['ended', 'dead']) walk`,
				"update jobs set finished_at = now() - interval '27 hours' where state in ('succeeded', 'dead', 'canceled')",
			},
			"should have been deleted or blanked 26h0m0s ago", "",
		},
		"a followed job that the deleter does not find": {
			"retention", job.Warning,
			[]string{
				`insert into retention (walk, policies, job_id, began_at, worker_id, worked_at, caught_up_at)
				values ('ended', '{"Default": {"Succeeded": 3600000000000}}', gen_random_uuid(), now(), 'w', now(), now())`,
				"update jobs set finished_at = now() - interval '27 hours', followed = true where state = 'succeeded'",
			},
			"should have been deleted or blanked 26h0m0s ago", "",
		},
		"an erasure that nobody works on": {
			"retention", job.Problem,
			[]string{"insert into erasures (erasure_id, tenant, reason, asked_by, updated_at) values (gen_random_uuid(), 'acme', '', '', now() - interval '11 minutes')"},
			": nobody has worked on it for 11m0s", "",
		},
		"an operation that nobody works on": {
			"operations", job.Warning,
			[]string{`insert into operations (operation_id, action, filter, frozen_at, tenant, rate, reason, started_by, expected, expected_more, due_at)
				values (gen_random_uuid(), 'requeue', '{}', now(), '', 1, '', '', 1, false, now() - interval '3 minutes')`},
			"(requeue): nobody has worked on it for 3m0s", "",
		},
		"an operation that fails": {
			"operations", job.Problem,
			[]string{`insert into operations (operation_id, action, filter, frozen_at, tenant, rate, reason, started_by, expected, expected_more, failures, last_error)
				values (gen_random_uuid(), 'cancel', '{}', now(), '', 1, '', '', 1, false, 3, 'disk full')`},
			"(cancel) does not get on: disk full", "",
		},
		"a table that was never analyzed": {
			"statistics", job.Warning,
			[]string{
				"alter table timers reset (autovacuum_analyze_threshold)",
				"insert into timers select gen_random_uuid(), now() from generate_series(1, 20000)", "vacuum timers",
			},
			"timers: never analyzed, about 20002 rows", "",
		},
	} {
		t.Run(name, func(t *testing.T) {
			s := sound(t)
			require.NotEqual(t, c.severity, diagnose(t, s)[c.check].Severity)
			began := time.Now()
			for _, sql := range c.harm {
				exec(t, s, sql)
			}
			check := diagnose(t, s)[c.check]
			require.Equal(t, c.severity, check.Severity, "%+v", check)
			requireSaid(t, check.Summary, c.summary, time.Since(began))
			requireSaid(t, fmt.Sprint(check.Details), c.detail, time.Since(began))
		})
	}
}

// parking parks a queued job in the lane, as if for so long.
func parking(lane, since string) []string {
	return []string{
		`with taken as (delete from ready where job_id = (select job_id from ready where job_type = 'QUEUED' order by job_id limit 1) returning *)
		insert into parked (job_id, lane, urgency, position, job_type, tenant, gates, attempt, parked_at)
		select job_id, '` + lane + `', urgency, run_at, job_type, 'default', '{}', attempt, now() - interval '` + since + `' from taken`,
	}
}

func TestADiagnosisKnowsWhyParkedJobsWait(t *testing.T) {
	s := open(t)
	for _, lane := range []string{"key:default/a", "type:ECHO", "tenant:default", "paused:default", "stopped:ECHO", "key:default/b", "type:OTHER"} {
		id := given(t, s)
		park(t, s, id, lane)
	}
	exec(t, s, "update parked set parked_at = now() - interval '2 minutes' where lane <> 'type:OTHER'")
	exec(t, s, "update parked set capacity = 2 where lane = 'key:default/b'")
	exec(t, s, `insert into slots (gate, used, wake_at) values
		('key:default/a', 3, null), ('key:default/b', 2, null), ('type:ECHO', 0, now()), ('tenant:default', 5, null)`)
	exec(t, s, "insert into limits (scope, name, concurrency) values ('key', '*', 3), ('type', '*', 9), ('tenant', 'default', 4)")
	exec(t, s, "insert into pauses (scope, name) values ('tenant', 'default'), ('type', 'ECHO')")
	check := diagnose(t, s)["admission"]
	require.Equal(t, job.Fine, check.Severity, "%+v", check)
	exec(t, s, "truncate pauses, slots")
	require.Equal(t, job.Problem, diagnose(t, s)["admission"].Severity)
	exec(t, s, "insert into pauses (scope, name) values ('all', '')")
	require.Equal(t, job.Fine, diagnose(t, s)["admission"].Severity)
}

func TestAListThatIsNotDueToBeAnalyzedIsFine(t *testing.T) {
	s := sound(t)
	exec(t, s, "insert into timers select gen_random_uuid(), now() from generate_series(1, 20000)")
	exec(t, s, "vacuum timers")
	require.Equal(t, job.Fine, diagnose(t, s)["statistics"].Severity)
}

func TestADiagnosisFindsDeadRowsThatPileUp(t *testing.T) {
	s := open(t)
	exec(t, s, "alter table timers set (autovacuum_enabled = off)")
	exec(t, s, "insert into timers select gen_random_uuid(), now() from generate_series(1, 100001)")
	exec(t, s, "delete from timers")
	require.Eventually(t, func() bool { // the server counts with a delay
		exec(t, s, "select") // version 14 counts when a session is used again
		details := fmt.Sprint(diagnose(t, s)["statistics"].Details)
		return strings.Contains(details, "timers: about 100001 dead rows beside 0 others")
	}, patience, 50*time.Millisecond)
}

func TestADiagnosisNeedsNoPrivileges(t *testing.T) {
	owner := sound(t)
	if !ask[bool](t, owner, "select rolsuper from pg_roles where rolname = current_user") {
		t.Skip("only a superuser can make somebody with less rights")
	}
	role := fmt.Sprintf("plain_%d", time.Now().UnixNano())
	exec(t, owner, "create role "+role+" login password 'plain'")
	t.Cleanup(func() {
		_, err := owner.db.Reads.Exec(context.Background(), "drop owned by "+role+"; drop role "+role, pgx.QueryExecModeSimpleProtocol)
		require.NoError(t, err)
	})
	address, err := url.Parse(urlOf(owner))
	require.NoError(t, err)
	address.User = url.UserPassword(role, "plain")
	s := openAt(t, address.String())

	refused := diagnose(t, s)
	for _, name := range []string{"ledger_and_lists", "leases", "silent_workers", "unserved_types", "schema_version"} {
		require.Equal(t, job.Warning, refused[name].Severity)
		require.Contains(t, refused[name].Summary, "This check could not be made: permission denied")
		require.Contains(t, refused[name].Remedy, "Grant")
	}
	exec(t, owner, "grant select on all tables in schema public to "+role)
	allowed := diagnose(t, s)
	require.Contains(t, fmt.Sprint(allowed["oldest_snapshot"].Details), "sessions of other users")
	for _, name := range []string{"ledger_and_lists", "leases", "silent_workers", "unserved_types", "schema_version", "statistics"} {
		require.Equal(t, job.Fine, allowed[name].Severity, name)
	}
}
