package config

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/holdfast-jobs/holdfast/runtime/job"
)

// auditKept is how long the audit log is kept by default.
var auditKept = new(400 * 24 * time.Hour)

func TestEveryJobIsKeptByDefault(t *testing.T) {
	for _, text := range []string{"plugins: []", "retention: {}", "retention:", "retention: {succeeded: keep, keys: keep}"} {
		cfg, err := loadText(t, text)
		require.NoError(t, err, text)
		policies, err := cfg.Retention.Policies()
		require.NoError(t, err)
		require.Equal(t, job.RetentionPolicies{Types: map[string]job.Retention{}, Audit: auditKept}, policies, text)
	}
}

func TestATypeHasTheTimesThatItDoesNotOverride(t *testing.T) {
	cfg, err := loadText(t, `retention: {succeeded: 168h, canceled: 1m, keys: 720h, types: {A.B: {succeeded: keep, dead: 1h}}}`,
		"retention.dead=24h", `retention.types."A.B".canceled=2m`, "retention.types.C.keys=5m")
	require.NoError(t, err)
	policies, err := cfg.Retention.Policies()
	require.NoError(t, err)
	week, month := new(168*time.Hour), new(720*time.Hour)
	require.Equal(t, job.RetentionPolicies{
		Default: job.Retention{Succeeded: week, Canceled: new(time.Minute), Dead: new(24 * time.Hour), Keys: month},
		Types: map[string]job.Retention{
			"A.B": {Canceled: new(2 * time.Minute), Dead: new(time.Hour), Keys: month},
			"C":   {Succeeded: week, Canceled: new(time.Minute), Dead: new(24 * time.Hour), Keys: new(5 * time.Minute)},
		},
		Audit: auditKept,
	}, policies)
	cfg, err = loadText(t, "retention: {audit: keep}")
	require.NoError(t, err)
	policies, err = cfg.Retention.Policies()
	require.NoError(t, err)
	require.Nil(t, policies.Audit)
}

func TestErrorsNameTheTimeThatCannotBe(t *testing.T) {
	for text, reason := range map[string]string{
		"retention: {succeeded: 30s}":              `retention.succeeded: "30s" is neither keep nor a duration from 1m to 876000h, such as 168h`,
		"retention: {succeeded: 7d}":               `retention.succeeded: "7d" is neither keep nor a duration`,
		"retention: {audit: 7d}":                   `retention.audit: "7d" is neither keep nor a duration`,
		"retention: {keys: 0}":                     "write keep, or a duration with its unit, such as 0h",
		"retention: {dead: never}":                 `retention.dead: "never" is neither keep nor a duration`,
		"retention: {dead: 999999h}":               `retention.dead: "999999h" is neither`,
		"retention: {running: 1h}":                 "unknown key retention.running",
		"retention: {types: {A: {canceled: -1h}}}": `retention.types.A.canceled: "-1h" is neither`,
		`retention: {types: {"a.b": {dead: ""}}}`:  `retention.types."a.b".dead: "" is neither`,
		"retention: {types: {A: 24h}}":             "'retention.types[A]' must have keys, not a single value",
	} {
		_, err := loadText(t, text)
		require.ErrorContains(t, err, reason, text)
	}
}

func TestAReloadAppliesRetention(t *testing.T) {
	was, err := loadText(t, "retention: {succeeded: 1h}")
	require.NoError(t, err)
	is, err := loadText(t, "retention: {succeeded: 2h}")
	require.NoError(t, err)
	is.Embedded, is.Security = was.Embedded, was.Security // they name the directory of the file
	require.Empty(t, Changed(was, is))
}
