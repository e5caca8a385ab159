package config

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/holdfast-jobs/holdfast/runtime/job"
)

// loadText loads a configuration file with the text.
func loadText(t *testing.T, text string, sets ...string) (Config, error) {
	t.Helper()
	path := filepath.Join(t.TempDir(), "config.yaml")
	require.NoError(t, os.WriteFile(path, []byte(text), 0o600))
	return Load(Sources{File: path, Sets: sets})
}

func TestLimitsComeFromEverySource(t *testing.T) {
	cfg, err := loadText(t, `limits: {types: {SEND_EMAIL: {concurrency: 10, rate: 100/1m}}, tenants: {"*": {concurrency: 50, weight: 1}},`+
		`keys: {smtp: {concurrency: 3, on_conflict: cancel_oldest}}, fairness: {premium: {weight: 3}}}`,
		"limits.types.SEND_EMAIL.fair=true", "limits.tenants.*.concurrency=0", "limits.types.SEND_EMAIL.burst=5")
	require.NoError(t, err)
	require.True(t, cfg.HasLimits)
	limits, err := cfg.Limits.List()
	require.NoError(t, err)
	rate, err := job.ParseRate("100/1m")
	require.NoError(t, err)
	rate.Burst = 5
	require.Equal(t, []job.Limit{
		{Scope: job.LimitFairness, Name: "premium", Weight: 3, Configured: true},
		{Scope: job.LimitKey, Name: "smtp", Concurrency: new(3), OnConflict: job.ConflictCancelOldest, Configured: true},
		{Scope: job.LimitTenant, Name: "*", Concurrency: new(0), Weight: 1, Configured: true},
		{Scope: job.LimitType, Name: "SEND_EMAIL", Concurrency: new(10), Rate: &rate, Fair: true, Configured: true},
	}, limits)
}

func TestASectionWithoutLimitsIsNotThatThereIsNone(t *testing.T) {
	for text, has := range map[string]bool{"limits: {}": true, "limits:": true, "plugins: []": false} {
		cfg, err := loadText(t, text)
		require.NoError(t, err, text)
		require.Equal(t, has, cfg.HasLimits, text)
		limits, err := cfg.Limits.List()
		require.NoError(t, err)
		require.Empty(t, limits)
	}
}

func TestErrorsNameTheLimitThatCannotBe(t *testing.T) {
	for text, reason := range map[string]string{
		"limits: {types: {A: {rate: 100}}}":                     "write a rate with its period, such as 100/1m",
		"limits: {types: {A: {rate: 100/m}}}":                   "limits.types.A.rate: must end with a period that has a unit, such as 100/1m",
		"limits: {types: {A: {weight: 3}}}":                     "unknown key limits.types.A.weight",
		"limits: {types: []}":                                   "'limits.types' must have keys, not a list of items; for none, write {}",
		"limits: {types: {A: 3}}":                               "'limits.types[A]' must have keys, not a single value",
		"limits: {types: {A: x}}":                               "'limits.types[A]' must have keys, not a single value",
		"limits: []":                                            "'limits' must have keys, not a list",
		"limits: {types: {A: {}}}":                              "limits.types.A: must have at least one of",
		"limits: {tenants: {a: {burst: 3}}}":                    "limits.tenants.a.burst: needs a rate",
		"limits: {keys: {a: {on_conflict: drop}}}":              "limits.keys.a.on_conflict: must be one of queue",
		`limits: {keys: {"smtp:a": {concurrency: 1}}}`:          "limits.keys.smtp:a: must be a class",
		"limits: {fairness: {a: {weight: 1001}}}":               "limits.fairness.a.weight: must be a whole number from 1 to 1000",
		"limits: {tenants: {a: {concurrency: -1}, b: {}}}":      "limits.tenants.a.concurrency: must be a whole number from 0",
		"limits: {tenants: {a: {concurrency: 1, fair: true}}}":  "unknown key limits.tenants.a.fair",
		"limits: {fairness: {a: {weight: 1, concurrency: 10}}}": "unknown key limits.fairness.a.concurrency",
	} {
		_, err := loadText(t, text)
		require.ErrorContains(t, err, reason, text)
	}
}
