package config

import (
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

func writeConfig(t *testing.T, text string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "holdfast.yaml")
	require.NoError(t, os.WriteFile(path, []byte(text), 0o600))
	return path
}

func TestLaterSourcesWin(t *testing.T) {
	path := writeConfig(t, `
worker: {poll_interval: 2s, drain_timeout: 2s, lease: 20s, concurrency: 2}
plugins:
  - {name: a, path: bin/a, args: [one]}
  - {name: b, path: /bin/b, env: {TOKEN: x}}
`)
	cfg, err := Load(Sources{
		File: path,
		Environ: []string{
			"HOLDFAST_WORKER__DRAIN_TIMEOUT=3s", "HOLDFAST_WORKER__LEASE=30s", "HOLDFAST_DATABASE__URL=postgres://x",
			"HOLDFAST_PLUGINS__0__PROCESSES=3", "HOLDFAST_PLUGINS__1__ENV__Api_Key=k",
			"HOLDFAST_JOBS__TYPES__SLEEP_JOB__TIMEOUT=9s", "HOLDFAST_JOBS__ACCEPT_UNKNOWN_TYPES=true",
			"HOLDFAST_TEST_DATABASE_URL=x", "HOLDFAST_JAEGER_URL=x", "HOLDFAST_HANDLER=x", "OTHER=x",
			"HOLDFAST_SERVER=http://x", "HOLDFAST_TOKEN=x", "HOLDFAST_USER=x", "HOLDFAST_PASSWORD=x",
		},
		Sets: []string{
			"worker.lease=40s", "plugins.0.args=x,y", "plugins.2.path=c", `jobs.types."email.send".retry.factor=2.5`,
			"plugins.0.limits.memory=1GiB", "database.url=postgres://y?a=b",
		},
	})
	require.NoError(t, err)
	require.Equal(t, 2*time.Second, cfg.Worker.PollInterval, "file over default")
	require.Equal(t, 3*time.Second, cfg.Worker.DrainTimeout, "environment over file")
	require.Equal(t, 40*time.Second, cfg.Worker.Lease, "flag over environment")
	require.Equal(t, 2, cfg.Worker.Concurrency)
	require.Equal(t, DatabaseURL("postgres://y?a=b"), cfg.Database.URL)
	require.True(t, cfg.Jobs.AcceptUnknownTypes)
	require.Equal(t, 9*time.Second, *cfg.Jobs.Types["SLEEP_JOB"].Timeout)
	require.InDelta(t, 2.5, *cfg.Jobs.Types["email.send"].Retry.Factor, 0)

	require.Len(t, cfg.Plugins, 3)
	a, b, c := cfg.Plugins[0], cfg.Plugins[1], cfg.Plugins[2]
	require.Equal(t, filepath.Join(filepath.Dir(path), "bin/a"), a.Path, "relative to the file")
	require.Equal(t, []string{"x", "y"}, a.Args)
	require.Equal(t, 3, *a.Processes)
	require.Equal(t, Size(1<<30), *a.Limits.Memory)
	require.Nil(t, a.Concurrency)
	require.Equal(t, "/bin/b", b.Path)
	require.Equal(t, map[string]string{"TOKEN": "x", "Api_Key": "k"}, b.Env)
	require.Equal(t, "c", c.Name, "the name of the file")
	require.Equal(t, filepath.Join(filepath.Dir(path), "data/postgres"), cfg.Embedded.DataDir)
}

func TestWithoutAFileTheDefaultsApply(t *testing.T) {
	t.Chdir(t.TempDir())
	cfg, err := Load(Sources{})
	require.NoError(t, err)
	require.Empty(t, cfg.Source)
	require.Equal(t, "127.0.0.1:8080", cfg.Server.Address)

	require.NoError(t, os.WriteFile(DefaultFile, []byte("server: {address: 127.0.0.1:1}"), 0o600))
	cfg, err = Load(Sources{})
	require.NoError(t, err)
	require.Equal(t, "127.0.0.1:1", cfg.Server.Address, "config.yaml beside it is read")

	_, err = Load(Sources{File: "missing.yaml"})
	require.ErrorContains(t, err, "missing.yaml")
}

func TestErrorsNameTheirKey(t *testing.T) {
	for _, c := range []struct{ file, env, set, want string }{
		{file: "worker: {concurency: 3}", want: "unknown key worker.concurency; the nearest known one is worker.concurrency"},
		{set: "database.direct_url=postgres://x", want: "database.direct_url: is set, but database.url is not"},
		{set: "database.replica_url=postgres://x", want: "database.replica_url: is set, but database.url is not"},
		{set: "database.replica_max_lag=2s", want: "database.replica_max_lag: 2s is below 3s"},
		{set: "database.cell=256", want: "database.cell: 256 is not from 0 to 255"},
		{file: "database: {cell: -1}", want: "database.cell: -1 is not from 0 to 255"},
		{env: "HOLDFAST_DATABASE__CELL=", want: `"" is not a whole number`},
		{file: "databse: {}", want: "unknown key databse; the nearest known one is database"},
		{file: "plugins: [{path: x, limit: {}}]", want: "unknown key plugins.0.limit; the nearest known one is plugins.0.limits"},
		{file: "jobs: {types: {A.B: {retry: {initial_dela: 1s}}}}", want: `unknown key jobs.types."A.B".retry.initial_dela; the nearest known one is jobs.types."A.B".retry.initial_delay`},
		{file: "Worker: {}", want: "unknown key Worker; the nearest known one is worker"},
		{env: "HOLDFAST_DATABSE__URL=x", want: "environment variable HOLDFAST_DATABSE__URL: unknown key databse.url; the nearest known one is database.url"},
		{env: "HOLDFAST_WORKER=x", want: "environment variable HOLDFAST_WORKER: worker has parts; set one of them, such as worker.id"},
		{env: "HOLDFAST_PLUGINS__0=x", want: "plugins.0 has parts; set one of them, such as plugins.0.name"},
		{env: "HOLDFAST_SECURITY__TOKENS__0__SCOPES__0=read", want: "security.tokens.0.scopes is set as a whole, its items separated by commas"},
		{set: "plugins=a,b", want: "--set plugins: plugins has parts; set one of them, such as plugins.0.name"},
		{set: "security=x", want: "security has parts; set one of them, such as security.enabled"},
		{set: "plugins.0.env=x", want: "plugins.0.env has parts; set one of them, such as plugins.0.env.NAME"},
		{set: "jobs.types.A=x", want: "jobs.types.A has parts; set one of them, such as jobs.types.A.max_attempts"},
		{set: "plugins.0.args.0=x", want: "--set plugins.0.args.0: plugins.0.args is set as a whole, its items separated by commas"},
		{set: "plugins.-1.path=x", want: "unknown key plugins.-1.path; the nearest known one is plugins.0.path"},
		{set: "plugins.0.args=[x,y", want: "'plugins[0].args' a value that begins with [ must be a JSON list of strings"},
		{set: "server.trusted_proxies=[1]", want: "'server.trusted_proxies' a value that begins with [ must be a JSON list of strings"},
		{set: "=x", want: "unknown key"},
		{env: "HOLDFAST_PLUGINS__X__PATH=x", want: "unknown key plugins.x.path; the nearest known one is plugins.0.path"},
		{set: "worker.id.x=1", want: "--set worker.id.x: unknown key worker.id.x; the nearest known one is worker.id"},
		{set: "worker", want: "--set worker: write key.path=value"},
		{set: "plugins.1.path=x", want: "there is no item 0 before item 1"},
		{file: "worker: {lease: 30}", want: "write a duration with its unit, such as 30s"},
		{file: "worker: {lease: soon}", want: `'worker.lease' "soon" is not a duration; write 500ms`},
		{file: "worker: 5", want: "worker"},
		{file: "worker: {poll_interval: 0s}", want: "worker.poll_interval: 0s is not above zero"},
		{file: "worker: {kill_grace: 15s}", want: "worker.kill_grace: 15s is not below half of worker.lease"},
		{file: "worker: {report_interval: 2m}", want: "worker.report_interval: 2m0s is not from 0s to 1m"},
		{file: "jobs: {max_progress_bytes: 0}", want: "jobs.max_progress_bytes: 0 is not from 1024 to 33554432"},
		{file: "jobs: {max_checkpoint_bytes: 33554433}", want: "jobs.max_checkpoint_bytes: 33554433 is not from 1024 to 33554432"},
		{file: "jobs: {max_follow_ups: 0}", want: "jobs.max_follow_ups: 0 is not from 1 to 10000"},
		{file: "jobs: {max_follow_up_bytes: 33554432}", want: "jobs.max_follow_up_bytes: 33554432 is not from 1024 to 16777216"},
		{file: "jobs: {max_result_bytes: 1000}", want: "jobs.max_result_bytes: 1000 is not from 1024 to 33554432"},
		{file: "worker: {crash_policy: hope}", want: `worker.crash_policy: "hope" is not one of expire, release`},
		{file: "jobs: {types: {A: {max_crashes: 0}}}", want: "jobs.types.A.max_crashes: 0 is not from 1 to 1000"},
		{file: "worker: {concurrency: many}", want: `"many" is not a whole number`},
		{file: "a: 1\nb: [", want: "holdfast.yaml"},
		{file: "server: {address: nowhere}", want: "server.address"},
		{file: "jobs: {types: {A: {commit: quick}}}", want: `jobs.types.A.commit: "quick" is not one of durable, fast`},
		{file: "jobs: {default: {commit: ''}}", want: `jobs.default.commit: "" is not one of durable, fast`},
		{file: "log: {level: loud}", want: `log.level: "loud" is not one of`},
		{file: "log: {format: xml}", want: `log.format: "xml" is not one of`},
		{file: `tracing: {trace_url_template: "localhost:16686/{trace_id}"}`, want: `tracing.trace_url_template: "localhost:16686/{trace_id}" is not an address such as`},
		{file: `tracing: {trace_url_template: "http://localhost:16686"}`, want: `tracing.trace_url_template: "http://localhost:16686" is not an address such as`},
		{file: `tracing: {endpoint: "http://collector:4317/v1/traces"}`, want: "tracing.endpoint: gRPC has no path"},
		{env: "OTEL_EXPORTER_OTLP_ENDPOINT=127.0.0.1:4318", want: "tracing.endpoint: OTEL_EXPORTER_OTLP_ENDPOINT: \"127.0.0.1:4318\" is not a URL"},
		{file: "log: {jobs: some}", want: `log.jobs: "some" is not one of`},
		{file: "jobs: {default: {retry: {factor: 0.5}}}", want: "jobs.default.retry: factor 0.5 is below 1"},
		{file: "jobs: {default: {max_attempts: 0}}", want: "jobs.default.max_attempts"},
		{file: "jobs: {types: {A: {retry: {backoff: linear}}}}", want: `jobs.types.A.retry: backoff "linear"`},
		{file: "jobs: {types: {A: {timeout: 25h}}}", want: "jobs.types.A.timeout"},
		{file: "plugins: [{name: x}]", want: "plugins.0.path: is empty"},
		{file: "plugins: [{path: x}, {path: y/x}]", want: `plugins.1.name: "x" is taken`},
		{file: "plugins: [{path: x, processes: 0}]", want: "plugins.0.processes: 0 is below 1"},
		{file: "plugins: [{path: x, isolated: 0}]", want: "plugins.0.isolated: 0 is below 1"},
		{file: "plugins: [{path: x, start_timeout: 0s}]", want: "plugins.0.start_timeout: 0s is not above 0s and at most 10m0s"},
		{file: "plugins: [{path: x, start_timeout: 2h}]", want: "plugins.0.start_timeout: 2h0m0s is not above 0s"},
		{file: "plugins: [{path: x, concurrency: 0}]", want: "plugins.0.concurrency: 0 is below 1"},
		{file: "plugins: [{path: x, sha256: abc}]", want: "plugins.0.sha256"},
		{file: "plugins: [{path: x, limits: {memory: 512}}]", want: "write a size with its unit"},
		{file: "plugins: [{path: x, limits: {memory: lots}}]", want: `"lots" is not a size such as 512MiB`},
		{file: "plugins: [{path: x, env: {A: '${NOT_SET}'}}]", want: "plugins.0.env.A: the variable NOT_SET is not set"},
		{file: "plugins: {0: {path: x}}", want: "plugins: must be a list"},
		{file: "plugins: builtin", want: "plugins"},
	} {
		from := Sources{File: writeConfig(t, c.file)}
		if c.env != "" {
			from.Environ = []string{c.env}
		}
		if c.set != "" {
			from.Sets = []string{c.set}
		}
		_, err := Load(from)
		require.ErrorContains(t, err, c.want, "%+v", c)
		require.NotContains(t, err.Error(), "decoding failed", "a headline that says nothing")
	}
}

func TestListsAreReadFromText(t *testing.T) {
	for text, want := range map[string][]string{
		"-v,--fast":         {"-v", "--fast"},
		`["a,b", "[", "é"]`: {"a,b", "[", "é"},
		` ["x"] `:           {"x"},
		"[]":                {},
		"":                  {},
		"a[0]":              {"a[0]"},
	} {
		for _, from := range []Sources{
			{Sets: []string{"plugins.0.path=x", "plugins.0.args=" + text}},
			{Sets: []string{"plugins.0.path=x"}, Environ: []string{"HOLDFAST_PLUGINS__0__ARGS=" + text}},
		} {
			from.File = writeConfig(t, "")
			cfg, err := Load(from)
			require.NoError(t, err)
			require.Equal(t, want, cfg.Plugins[0].Args, text)
		}
	}
	cfg, err := Load(Sources{File: writeConfig(t, ""), Sets: []string{`server.trusted_proxies=["10.0.0.0/8"]`}})
	require.NoError(t, err)
	require.Equal(t, []string{"10.0.0.0/8"}, cfg.Server.TrustedProxies)
}

func TestErrorsContainNoSecrets(t *testing.T) {
	_, err := Load(Sources{Sets: []string{"plugins.0.args=[s3cret"}})
	require.Error(t, err)
	require.NotContains(t, err.Error(), "s3cret")
	_, err = Load(Sources{File: writeConfig(t, "plugins: [{path: x, env: {TOKEN: 4711}}]")})
	require.ErrorContains(t, err, "TOKEN")
	require.NotContains(t, err.Error(), "4711")
}

func TestPluginsGetOnlyTheirOwnEnvironment(t *testing.T) {
	h := Plugin{Path: "x", Env: map[string]string{
		"TOKEN": "Bearer ${SECRET}", "LITERAL": "$${SECRET} $SECRET", "LANG": "C", "EMPTY": "${BLANK}",
	}}
	environment, err := h.Environment([]string{"SECRET=s3cret", "PATH=/bin", "LANG=de_DE", "DATABASE_PASSWORD=x", "BLANK="}, nil)
	require.NoError(t, err)
	require.Equal(t, []string{"EMPTY=", "LANG=C", "LITERAL=${SECRET} $SECRET", "PATH=/bin", "TOKEN=Bearer s3cret"}, environment)
}

func TestSizes(t *testing.T) {
	for text, want := range map[string]Size{"1B": 1, "2 kB": 2000, "3KiB": 3072, "512MiB": 512 << 20, "1GB": 1e9, "2GiB": 2 << 30} {
		var got Size
		require.NoError(t, got.UnmarshalText([]byte(text)))
		require.Equal(t, want, got, text)
	}
	for _, text := range []string{"", "MiB", "-1B", "1.5GiB", "99999999999GiB", "12", "1TiB"} {
		var got Size
		require.Error(t, got.UnmarshalText([]byte(text)), text)
	}
}
