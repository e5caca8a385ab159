package config

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestKeysOfEarlierVersionsNameTheirSuccessors(t *testing.T) {
	for was, is := range map[string]string{
		"handlers":                                 "plugins",
		"handlers.1.path":                          "plugins.1.path",
		"handlers.0.alone":                         "plugins.0.isolated",
		"plugins.0.alone":                          "plugins.0.isolated",
		"worker.claim_ahead":                       "worker.prefetch",
		"worker.after_crash":                       "worker.crash_policy",
		"worker.poll":                              "worker.poll_interval",
		"worker.drain":                             "worker.drain_timeout",
		"worker.handlers_cgroup":                   "worker.plugins_cgroup",
		"jobs.default.retry.base":                  "jobs.default.retry.initial_delay",
		"jobs.default.retry.cap":                   "jobs.default.retry.max_delay",
		"jobs.types.A_JOB.retry.base":              "jobs.types.A_JOB.retry.initial_delay",
		`jobs.types."a.job".retry.cap`:             `jobs.types."a.job".retry.max_delay`,
		"jobs.default.retry.at_once_after_timeout": "jobs.default.retry.immediate_after_timeout",
		"jobs.types.A.retry.at_once_after_timeout": "jobs.types.A.retry.immediate_after_timeout",
		"tracing.link":                             "tracing.trace_url_template",
		"tracing.handlers":                         "tracing.plugins",
	} {
		want := was + " is now called " + is
		_, err := Load(Sources{File: writeConfig(t, ""), Sets: []string{was + "=1"}})
		require.ErrorContains(t, err, "--set "+was+": "+want)

		if !strings.Contains(was, `"`) {
			variable := envPrefix + strings.ToUpper(strings.ReplaceAll(was, ".", "__"))
			_, err = Load(Sources{File: writeConfig(t, ""), Environ: []string{variable + "=1"}})
			require.ErrorContains(t, err, "environment variable "+variable+": ")
			require.ErrorContains(t, err, " is now called ")
		}
	}
	for file, want := range map[string]string{
		"handlers: [{path: x}]":                                "handlers is now called plugins",
		"plugins: [{path: x, alone: 1}]":                       "plugins.0.alone is now called plugins.0.isolated",
		"worker: {poll: 1s}":                                   "worker.poll is now called worker.poll_interval",
		"jobs: {default: {retry: {cap: 1s}}}":                  "jobs.default.retry.cap is now called jobs.default.retry.max_delay",
		"jobs: {types: {a.job: {retry: {base: 1s}}}}":          `jobs.types."a.job".retry.base is now called jobs.types."a.job".retry.initial_delay`,
		"tracing: {link: 'http://localhost/trace/{trace_id}'}": "tracing.link is now called tracing.trace_url_template",
	} {
		path := writeConfig(t, file)
		_, err := Load(Sources{File: path})
		require.ErrorContains(t, err, "configuration file "+path+": "+want)
	}
}

func TestEverySuccessorOfAnEarlierKeyIsKnown(t *testing.T) {
	for _, r := range renamedKeys {
		is := parseKey(strings.ReplaceAll(r.is, "*", "0"))
		_, found := locate(is)
		require.NotNil(t, found, r.is)
		_, found = locate(parseKey(strings.ReplaceAll(r.was, "*", "0")))
		require.Nil(t, found, r.was)
	}
}

func TestTheEarlierNameOfACrashPolicyNamesItsSuccessor(t *testing.T) {
	_, err := Load(Sources{File: writeConfig(t, "worker: {crash_policy: give_back}")})
	require.ErrorContains(t, err, "worker.crash_policy: give_back is now called release")
}
