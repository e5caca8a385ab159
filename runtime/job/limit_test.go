package job_test

import (
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/holdfast-jobs/holdfast/runtime/job"
)

func TestRatesAreReadAndWritten(t *testing.T) {
	for text, want := range map[string]job.Rate{
		"100/1m":    {Count: 100, Period: time.Minute, Burst: 2},
		"100/1s":    {Count: 100, Period: time.Second, Burst: 100},
		"1/24h":     {Count: 1, Period: 24 * time.Hour, Burst: 1},
		"5/1h30m":   {Count: 5, Period: 90 * time.Minute, Burst: 1},
		"10/100ms":  {Count: 10, Period: 100 * time.Millisecond, Burst: 10},
		"90/1m30s":  {Count: 90, Period: 90 * time.Second, Burst: 1},
		"600/10m":   {Count: 600, Period: 10 * time.Minute, Burst: 1},
		"7/1h0m30s": {Count: 7, Period: time.Hour + 30*time.Second, Burst: 1},
	} {
		rate, err := job.ParseRate(text)
		require.NoError(t, err, text)
		require.Equal(t, want, rate, text)
		require.Equal(t, text, rate.String())
	}
	for text, reason := range map[string]string{
		"":            "such as 100/1m",
		"100":         "has no period: write how many may start in which time, such as 100/1m",
		"fast":        "must be how many may start",
		"x/1m":        "must be how many may start",
		"1.5/1m":      "must be how many may start",
		"0/1m":        "from 1 to 1000000; concurrency 0",
		"-1/1m":       "from 1 to",
		"1000001/1m":  "from 1 to",
		"100/m":       "such as 100/1m, 100/1s",
		"100/60":      "such as 100/1m, 100/1s",
		"100/":        "such as 100/1m, 100/1s",
		"100/0s":      "from 1ms to 720h",
		"100/1ns":     "from 1ms to 720h",
		"100/-1m":     "from 1ms to 720h",
		"100/721h":    "from 1ms to 720h",
		"100/1m/1m":   "such as 100/1m, 100/1s",
		"9e99/1m":     "must be how many may start",
		"100 per 1 m": "must be how many may start",
	} {
		_, err := job.ParseRate(text)
		require.ErrorContains(t, err, reason, text)
	}
}

func TestContradictionsInALimitAreNamed(t *testing.T) {
	conflict := func(c job.OnConflict) *job.OnConflict { return &c }
	for _, c := range []struct {
		scope  job.LimitScope
		name   string
		spec   job.LimitSpec
		member string // of the only fault
		reason string
	}{
		{"queue", "a", job.LimitSpec{Weight: new(1)}, "scope", "one of type, tenant"},
		{job.LimitType, "", job.LimitSpec{Fair: new(true)}, "name", "empty"},
		{job.LimitType, "a\x00b", job.LimitSpec{Fair: new(true)}, "name", "control characters"},
		{job.LimitKey, "smtp:a", job.LimitSpec{Concurrency: new(1)}, "name", "such as smtp"},
		{job.LimitTenant, "a", job.LimitSpec{}, "", "at least one of concurrency, rate, weight"},
		{job.LimitType, "A", job.LimitSpec{Concurrency: new(-1)}, "concurrency", "from 0"},
		{job.LimitType, "A", job.LimitSpec{Rate: new("100")}, "rate", "no period"},
		{job.LimitType, "A", job.LimitSpec{Concurrency: new(1), Burst: new(1)}, "burst", "needs a rate"},
		{job.LimitType, "A", job.LimitSpec{Rate: new("1/1s"), Burst: new(0)}, "burst", "from 1"},
		{job.LimitType, "A", job.LimitSpec{Weight: new(2)}, "weight", "use fair: true"},
		{job.LimitTenant, "a", job.LimitSpec{Weight: new(0)}, "weight", "from 1 to 1000"},
		{job.LimitTenant, "a", job.LimitSpec{OnConflict: conflict(job.ConflictQueue)}, "onConflict", "only a class of keys"},
		{job.LimitFairness, "a", job.LimitSpec{OnConflict: conflict(job.ConflictQueue)}, "onConflict", "a fairness key has a weight only"},
		{job.LimitKey, "a", job.LimitSpec{OnConflict: conflict("drop")}, "onConflict", "one of queue"},
		{job.LimitTenant, "a", job.LimitSpec{Fair: new(true)}, "fair", "only a type"},
		{job.LimitFairness, "a", job.LimitSpec{Concurrency: new(1)}, "concurrency", "weight only"},
		{job.LimitFairness, "a", job.LimitSpec{Rate: new("1/1s")}, "rate", "weight only"},
	} {
		_, faults := c.spec.Limit(c.scope, c.name)
		require.Len(t, faults, 1, "%s %+v", c.reason, faults)
		require.Equal(t, c.member, faults[0].Member)
		require.Contains(t, faults[0].Reason, c.reason)
	}
	limit, faults := job.LimitSpec{
		Concurrency: new(0), Rate: new("100/1m"), OnConflict: conflict(job.ConflictCancelOldest),
	}.Limit(job.LimitKey, job.EveryName)
	require.Empty(t, faults)
	require.Equal(t, job.Limit{
		Scope: job.LimitKey, Name: "*", Concurrency: new(0), Rate: &job.Rate{Count: 100, Period: time.Minute, Burst: 2},
		OnConflict: job.ConflictCancelOldest,
	}, limit)
	limit, faults = job.LimitSpec{Rate: new("100/1m"), Burst: new(50)}.Limit(job.LimitTenant, "a")
	require.Empty(t, faults)
	require.Equal(t, 50, limit.Rate.Burst)
}

func TestNamesOfRulesAreBoundedInCharactersAsInASubmission(t *testing.T) {
	longest := strings.Repeat("é", 200)
	for _, scope := range job.LimitScopes() {
		_, faults := job.LimitSpec{}.Limit(scope, longest)
		require.Len(t, faults, 1, "only that it says nothing: %+v", faults)
		_, faults = job.LimitSpec{}.Limit(scope, longest+"é")
		require.Contains(t, faults, job.Fault{Member: "name", Reason: "must not be longer than 200 characters"})
	}
	require.Empty(t, job.CheckPause(job.PauseTenant, longest))
	require.Equal(t, []job.Fault{{Member: "name", Reason: "must not be longer than 200 characters"}}, job.CheckPause(job.PauseTenant, longest+"é"))
}

func TestWhatAPauseCanBeOf(t *testing.T) {
	require.Empty(t, job.CheckPause(job.PauseAll, ""))
	require.Empty(t, job.CheckPause(job.PauseTenant, "a"))
	for scope, name := range map[job.PauseScope]string{
		job.PauseAll: "a", job.PauseType: "", job.PauseWorker: "w", job.PausePlugin: job.EveryName, job.PauseTenant: job.EveryName,
	} {
		require.Len(t, job.CheckPause(scope, name), 1, scope)
	}
}
