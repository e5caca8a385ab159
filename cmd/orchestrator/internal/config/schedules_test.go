package config

import (
	"encoding/json"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/holdfast-jobs/holdfast/runtime/job"
)

func TestSchedulesComeFromTheFile(t *testing.T) {
	cfg, err := loadText(t, `
schedules:
  a.b:
    {cron: "30 6 * * 1-5", zone: Europe/Berlin, tenant: acme, overlap: skip, jitter: 30s, job: {jobType: X, payload: {a.b: [1, 2.5, {c: null}]}, tags: [t]}}
  every: {every: 90m, anchor: 2026-01-01T00:05:00Z, catch_up: all, catch_up_window: 2h, starts_at: "2026-01-01T00:00:00+01:00", job: {jobType: Y, payload: {}}}
`, "schedules.every.jitter=5s")
	require.NoError(t, err)
	require.True(t, cfg.HasSchedules)
	list, err := cfg.Schedules.List()
	require.NoError(t, err)
	require.Equal(t, []job.Schedule{
		{
			Tenant: "acme", Name: "a.b", Timing: job.Timing{Cron: "30 6 * * 1-5", Zone: "Europe/Berlin"}, Jitter: 30 * time.Second,
			Overlap: job.OverlapSkip, CatchUp: job.CatchUpLast, CatchUpWindow: 24 * time.Hour, Configured: true,
			Job: json.RawMessage(`{"jobType":"X","payload":{"a.b":[1,2.5,{"c":null}]},"tags":["t"]}`),
		},
		{
			Tenant: "default", Name: "every", Timing: job.Timing{
				Every: 90 * time.Minute, Anchor: time.Date(2026, 1, 1, 0, 5, 0, 0, time.UTC), StartsAt: time.Date(2025, 12, 31, 23, 0, 0, 0, time.UTC),
			},
			Jitter: 5 * time.Second, Overlap: job.OverlapAllow, CatchUp: job.CatchUpAll, CatchUpWindow: 2 * time.Hour, Configured: true,
			Job: json.RawMessage(`{"jobType":"Y","payload":{}}`),
		},
	}, list)
	for text, has := range map[string]bool{"schedules: {}": true, "schedules:": true, "plugins: []": false} {
		cfg, err := loadText(t, text)
		require.NoError(t, err, text)
		require.Equal(t, has, cfg.HasSchedules, text)
	}
}

func TestErrorsNameTheScheduleThatCannotBe(t *testing.T) {
	for text, reason := range map[string]string{
		"schedules: {s: {job: {jobType: X}}}":                                                "schedules.s: must have exactly one of cron, every and at",
		"schedules: {s: {cron: '@daily'}}":                                                   "schedules.s.job: is needed",
		"schedules: {s: {cron: '0 0 30 2 *', job: {jobType: X}}}":                            "schedules.s.cron: has no tick, ever",
		"schedules: {s: {cron: '@daily', zone: Local, job: {jobType: X}}}":                   "schedules.s.zone: is not a time zone",
		"schedules: {s: {every: 30, job: {jobType: X}}}":                                     "write a duration with its unit, such as 30s",
		"schedules: {s: {every: 0s, job: {jobType: X}}}":                                     "schedules.s.every: must be at least 1s",
		"schedules: {s: {at: soon, job: {jobType: X}}}":                                      "schedules.s.at: must be an RFC 3339 time",
		"schedules: {s: {cron: '@daily', catch_up: some, job: {jobType: X}}}":                "schedules.s.catch_up: must be one of none, last, all",
		"schedules: {s: {cron: '@daily', job: {jobType: X, runAt: '2030-01-01T00:00:00Z'}}}": "schedules.s.job.runAt: must be left out",
		"schedules: {s: {cron: '@daily', job: {type: X}}}":                                   "schedules.s.job.type: is not known",
		"schedules: {s: {cron: '@daily', job: {jobType: X, priority: high}}}":                "schedules.s.job.priority: must be a whole number",
		"schedules: {s: {cron: '@daily', tenant: \"a\\nb\", job: {jobType: X}}}":             "schedules.s.tenant: must not contain NUL",
		"schedules: {s: {crons: '@daily'}}":                                                  "unknown key schedules.s.crons",
	} {
		_, err := loadText(t, text)
		require.ErrorContains(t, err, reason, text)
	}
}
