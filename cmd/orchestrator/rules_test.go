package main

import (
	"encoding/json"
	"log/slog"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/holdfast-jobs/holdfast/api/guard"
	"github.com/holdfast-jobs/holdfast/cmd/orchestrator/internal/config"
	"github.com/holdfast-jobs/holdfast/runtime/job"
	"github.com/holdfast-jobs/holdfast/test/pgtest"
	"github.com/holdfast-jobs/holdfast/test/storetest"
)

func TestLimitsAndPausesAreSetFromTheCommandLine(t *testing.T) {
	t.Chdir(t.TempDir())
	l := newLedger(t)
	require.NoError(t, l.store.RegisterWorker(t.Context(), job.Worker{ID: "w-1", Host: "h", PID: 1, Roles: job.AllRoles()}, time.Minute))
	for name, environ := range map[string][]string{
		"server": {"HOLDFAST_SERVER=" + l.serve(t, nil)},
		"direct": {"HOLDFAST_DATABASE__URL=" + l.url},
	} {
		t.Run(name, func(t *testing.T) {
			run := func(args ...string) outcome {
				if name == "direct" {
					args = append(args, "--direct")
				}
				return executeWith(t, nil, environ, args...)
			}
			for _, c := range []struct {
				args []string
				code int
				says string
			}{
				{[]string{"limits", "set", "type", "ECHO", "--concurrency", "2", "--rate", "100/1m"}, exitOK, "100/1m      2"},
				{[]string{"limits", "list"}, exitOK, "type   ECHO              2     0  100/1m      2"},
				{[]string{"limits", "set", "type", "ECHO", "--weight", "2"}, exitFailure, "#/weight: only a tenant"},
				{[]string{"limits", "delete", "type", "ECHO"}, exitOK, "ECHO"},
				{[]string{"limits", "delete", "type", "ECHO"}, exitFailure, "no such limit"},
				{[]string{"pause", "type", "ECHO", "--reason", "migration", "--for", "1h"}, exitOK, "migration"},
				{[]string{"pause", "all"}, exitOK, "all"},
				{[]string{"pauses"}, exitOK, "type   ECHO"},
				{[]string{"resume", "all"}, exitOK, "all"},
				{[]string{"resume", "type", "ECHO"}, exitOK, "migration"},
				{[]string{"resume", "type", "ECHO"}, exitFailure, "no such pause"},
				{[]string{"drain", "w-1"}, exitOK, "draining"},
				{[]string{"resume", "worker", "w-1"}, exitOK, "alive"},
				{[]string{"drain", "nobody"}, exitFailure, "no such worker"},
			} {
				got := run(c.args...)
				require.Equal(t, c.code, got.code, "%s: %s", c.args, got.stderr)
				require.Contains(t, got.stdout+got.stderr, c.says, c.args)
			}
		})
	}
}

func TestATenantsTokenNeitherSeesNorEndsPauses(t *testing.T) {
	t.Chdir(t.TempDir())
	l := newLedger(t)
	url := l.serve(t, &guard.Access{NoPassword: true, Tokens: []guard.Token{
		{Name: "ops", Digest: guard.DigestOf("ops"), Scopes: guard.Scopes()},
		{Name: "acme", Digest: guard.DigestOf("acme"), Scopes: guard.Scopes(), Tenant: "acme"},
	}})
	as := func(token string, args ...string) outcome {
		return executeWith(t, nil, []string{"HOLDFAST_SERVER=" + url, "HOLDFAST_TOKEN=" + token}, args...)
	}
	require.Equal(t, exitOK, as("ops", "pause", "tenant", "acme").code)
	for _, args := range [][]string{{"pauses"}, {"resume", "tenant", "acme"}, {"limits", "list"}, {"limits", "set", "tenant", "acme", "--weight", "9"}} {
		require.Equal(t, exitFailure, as("acme", args...).code, args)
	}
	require.Contains(t, as("ops", "pauses").stdout, "token ops", "who paused it")
}

func TestTheLimitsOfTheConfigurationAreInForceAndReloaded(t *testing.T) {
	url := pgtest.URL(t)
	cfg := config.Defaults()
	cfg.Limits.Types = map[string]config.TypeLimit{"A": {Concurrency: new(1)}, "B": {Concurrency: new(1)}}
	cfg.HasLimits = true
	log := &records{}
	parts, err := assemble(t.Context(), cfg, config.DatabaseURL(url), nil, slog.New(slog.NewJSONHandler(log, nil)))
	require.NoError(t, err)
	defer parts.close(t.Context())
	ledger := storetest.Open(t, url, 2)
	limits := func() map[string]int {
		rules, _, err := ledger.Rules(t.Context())
		require.NoError(t, err)
		found := map[string]int{}
		for _, limit := range rules.Limits() {
			require.True(t, limit.Configured)
			found[limit.Name] = *limit.Concurrency
		}
		return found
	}
	require.Equal(t, map[string]int{"A": 1, "B": 1}, limits())
	logged := func() (done []string) {
		for line := range strings.Lines(log.String()) {
			var record struct{ Msg, Limit, By string }
			require.NoError(t, json.Unmarshal([]byte(line), &record))
			if record.By == "configuration" {
				done = append(done, record.Msg+": "+record.Limit)
			}
		}
		return done
	}
	want := []string{"limit set: type A", "limit set: type B"}
	require.ElementsMatch(t, want, logged())
	_, err = parts.api.Rules.SetLimit(t.Context(), job.Limit{Scope: job.LimitType, Name: "A", Concurrency: new(5)})
	require.ErrorIs(t, err, job.ErrConfigured)

	cfg.Limits.Types = map[string]config.TypeLimit{"A": {Concurrency: new(2)}}
	require.NoError(t, parts.reload(cfg))
	require.Equal(t, map[string]int{"A": 2}, limits())
	want = append(want, "limit deleted: type B", "limit set: type A")
	require.ElementsMatch(t, want, logged())
	require.NoError(t, parts.reload(cfg))
	require.Len(t, logged(), len(want), "the same again")
	cfg.Limits, cfg.HasLimits = config.JobLimits{}, false
	require.NoError(t, parts.reload(cfg))
	require.Equal(t, map[string]int{"A": 2}, limits(), "no section changes nothing")
	cfg.HasLimits = true
	require.NoError(t, parts.reload(cfg))
	require.Empty(t, limits())

	cfg.Limits.Types = map[string]config.TypeLimit{"A": {}}
	require.ErrorContains(t, parts.reload(cfg), "the plugins were reloaded, but not the limits: limits.types.A: must have at least one of")
}
