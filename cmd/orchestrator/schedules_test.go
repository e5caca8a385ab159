package main

import (
	"log/slog"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/holdfast-jobs/holdfast/cmd/orchestrator/internal/config"
	"github.com/holdfast-jobs/holdfast/runtime/job"
	"github.com/holdfast-jobs/holdfast/test/pgtest"
	"github.com/holdfast-jobs/holdfast/test/storetest"
)

func TestSchedulesAreSetFromTheCommandLine(t *testing.T) {
	t.Chdir(t.TempDir())
	l := newLedger(t)
	for name, environ := range map[string][]string{
		"server": {"HOLDFAST_SERVER=" + l.serve(t, nil)},
		"direct": {"HOLDFAST_DATABASE__URL=" + l.url},
	} {
		t.Run(name, func(t *testing.T) {
			for _, c := range []struct {
				args []string
				code int
				says string
			}{
				{[]string{"set", "a", "ECHO", "--cron", "30 6 * * *", "--zone", "Europe/Berlin", "--payload", `{"n": 7}`}, exitOK, `{"n":7}`},
				{[]string{"set", "b", "ECHO", "--every", "1h", "--payload", `{"n": 7}`, "--overlap", "queue", "--tenant", "acme", "--priority", "5"}, exitOK, `"priority":5`},
				{[]string{"set", "c", "ECHO", "--cron", "0 0 30 2 *", "--payload", `{"n": 7}`}, exitFailure, "#/cron: has no tick, ever"},
				{[]string{"set", "c", "ECHO"}, exitFailure, "exactly one of cron, every and at"},
				{[]string{"set", "c"}, exitUsage, "TYPE is missing"},
				{[]string{"list"}, exitOK, "30 6 * * * Europe/Berlin"},
				{[]string{"list", "--tenant", "acme", "--json"}, exitOK, `"every":"1h0m0s"`},
				{[]string{"get", "a"}, exitOK, "active"},
				{[]string{"get", "b"}, exitFailure, "no such schedule"},
				{[]string{"pause", "a", "--reason", "closing"}, exitOK, "closing"},
				{[]string{"run", "a"}, exitOK, "PENDING"},
				{[]string{"resume", "a"}, exitOK, "active"},
				{[]string{"backfill", "a", "--from", "2026-01-01T00:00:00Z", "--to", "2026-01-03T00:00:00Z"}, exitOK, "RUNS  MADE  FOUND  SKIPPED"},
				{[]string{"backfill", "a"}, exitFailure, "#/from: is required"},
				{[]string{"next", "a", "--after", "2026-03-28T12:00:00Z", "--limit", "1"}, exitOK, "Sun 2026-03-29 06:30:00 +02:00"},
				{[]string{"next", "--every", "90s", "--after", "2026-03-28T12:00:00Z", "--limit", "1"}, exitOK, "2026-03-28T12:01:30Z"},
				{[]string{"next"}, exitUsage, "name a schedule, or give a timing"},
				{[]string{"delete", "a"}, exitOK, "ECHO"},
				{[]string{"delete", "b", "--tenant", "acme"}, exitOK, "ECHO"},
				{[]string{"delete", "a"}, exitFailure, "no such schedule"},
			} {
				args := append([]string{"schedule"}, c.args...)
				if name == "direct" {
					args = append(args, "--direct")
				}
				got := executeWith(t, nil, environ, args...)
				require.Equal(t, c.code, got.code, "%s: %s", c.args, got.stderr)
				require.Contains(t, got.stdout+got.stderr, c.says, c.args)
			}
		})
	}
}

func TestTheSchedulesOfTheConfigurationAreKeptAndReloaded(t *testing.T) {
	url := pgtest.URL(t)
	cfg := config.Defaults()
	every := func(jobType string) config.ScheduleEntry {
		return config.ScheduleEntry{Cron: "@daily", Job: map[string]any{"jobType": jobType}}
	}
	cfg.Schedules, cfg.HasSchedules = config.Schedules{"a": every("A"), "b": every("B")}, true
	parts, err := assemble(t.Context(), cfg, config.DatabaseURL(url), nil, slog.New(slog.DiscardHandler))
	require.NoError(t, err)
	t.Cleanup(func() { parts.close(t.Context()) })
	ledger := storetest.Open(t, url, 2)
	names := func() (names []string) {
		found, err := ledger.Schedules(t.Context(), job.ScheduleFilter{Limit: 10})
		require.NoError(t, err)
		for _, one := range found {
			names = append(names, one.Name)
			require.True(t, one.Configured)
			require.False(t, one.NextAt.IsZero())
		}
		return names
	}
	require.Equal(t, []string{"a", "b"}, names())
	require.ErrorIs(t, ledger.DeleteSchedule(t.Context(), job.DefaultTenant, "a"), job.ErrScheduleConfigured)
	require.NoError(t, ledger.PauseSchedule(t.Context(), job.DefaultTenant, "a", "", ""))

	cfg.Schedules = config.Schedules{"a": every("C")}
	require.NoError(t, parts.reload(cfg))
	found, err := ledger.Schedules(t.Context(), job.ScheduleFilter{Limit: 10})
	require.NoError(t, err)
	require.Len(t, found, 1)
	require.JSONEq(t, `{"jobType": "C"}`, string(found[0].Job))
	require.NotNil(t, found[0].Pause, "a reload does not end a pause")

	cfg.Schedules, cfg.HasSchedules = nil, false
	require.NoError(t, parts.reload(cfg))
	_, err = ledger.Schedule(t.Context(), job.DefaultTenant, "a")
	require.NoError(t, err, "no section changes nothing")
	cfg.HasSchedules = true
	require.NoError(t, parts.reload(cfg))
	require.Empty(t, names())
}
