package main

import (
	"os"
	"time"

	"github.com/holdfast-jobs/holdfast/api"
	"github.com/holdfast-jobs/holdfast/plugin/host"
	"github.com/holdfast-jobs/holdfast/runtime"
	"github.com/holdfast-jobs/holdfast/runtime/job"
)

// config is everything that can be set. config.yaml at the root of the
// repository documents each key; a test keeps the two alike. A pointer is a
// setting that may be absent.
type config struct {
	Server    serverConfig    `koanf:"server"`
	Database  databaseConfig  `koanf:"database"`
	Embedded  embeddedConfig  `koanf:"embedded"`
	Worker    workerConfig    `koanf:"worker"`
	Jobs      jobsConfig      `koanf:"jobs"`
	Plugins   []pluginConfig  `koanf:"plugins"`
	Security  securityConfig  `koanf:"security"`
	RateLimit rateLimitConfig `koanf:"rate_limit"`
	Tracing   tracingConfig   `koanf:"tracing"`
	Log       logConfig       `koanf:"log"`

	// source is the file that was read; empty for none.
	source string
	// listsPlugins says that the file has a handlers section, if an empty one.
	listsPlugins bool
}

type serverConfig struct {
	Address           string        `koanf:"address"`
	MaxBodyBytes      int64         `koanf:"max_body_bytes"`
	MaxBatchBytes     int64         `koanf:"max_batch_bytes"`
	MaxReceivingBytes int64         `koanf:"max_receiving_bytes"`
	MaxHeaderBytes    int           `koanf:"max_header_bytes"`
	RequestTimeout    time.Duration `koanf:"request_timeout"`
	ReadHeaderTimeout time.Duration `koanf:"read_header_timeout"`
	ReadTimeout       time.Duration `koanf:"read_timeout"`
	WriteTimeout      time.Duration `koanf:"write_timeout"`
	IdleTimeout       time.Duration `koanf:"idle_timeout"`
	MaxConnections    int           `koanf:"max_connections"`
	TrustedProxies    []string      `koanf:"trusted_proxies"`
}

type databaseConfig struct {
	URL            databaseURL `koanf:"url"`
	MaxConnections int32       `koanf:"max_connections"`
	// StartWait bounds how long the start waits for the database; 0 for not at all.
	StartWait time.Duration `koanf:"start_wait"`
}

type embeddedConfig struct {
	DataDir string `koanf:"data_dir"`
	BinDir  string `koanf:"bin_dir"`
}

type workerConfig struct {
	ID           string        `koanf:"id"`
	Concurrency  int           `koanf:"concurrency"`
	Lease        time.Duration `koanf:"lease"`
	PollInterval time.Duration `koanf:"poll_interval"`
	DrainTimeout time.Duration `koanf:"drain_timeout"`
	KillGrace    time.Duration `koanf:"kill_grace"`
	Prefetch     time.Duration `koanf:"prefetch"`
	// ReportInterval is runtime.Config.ReportEvery.
	ReportInterval time.Duration `koanf:"report_interval"`
	// PluginsCgroup is auto, none or a path; see host.Settings.
	PluginsCgroup string `koanf:"plugins_cgroup"`
	// CrashPolicy is expire or give_back.
	CrashPolicy runtime.CrashPolicy `koanf:"crash_policy"`
}

type jobsConfig struct {
	AcceptUnknownTypes bool                  `koanf:"accept_unknown_types"`
	MaxProgressBytes   int                   `koanf:"max_progress_bytes"`
	MaxCheckpointBytes int                   `koanf:"max_checkpoint_bytes"`
	MaxResultBytes     int                   `koanf:"max_result_bytes"`
	Default            typeConfig            `koanf:"default"`
	Types              map[string]typeConfig `koanf:"types"`
}

// typeConfig is what is set about a job type; under jobs.default all of it is.
type typeConfig struct {
	MaxAttempts *int           `koanf:"max_attempts"`
	MaxCrashes  *int           `koanf:"max_crashes"`
	Timeout     *time.Duration `koanf:"timeout"`
	Commit      *commit        `koanf:"commit"`
	Retry       retryConfig    `koanf:"retry"`
}

// commit is what the answer to a submission waits for.
type commit string

const (
	// durable waits until the job is on disk.
	durable commit = "durable"
	// fast does not.
	fast commit = "fast"
)

type retryConfig struct {
	Backoff            *job.Backoff   `koanf:"backoff"`
	InitialDelay       *time.Duration `koanf:"initial_delay"`
	Factor             *float64       `koanf:"factor"`
	MaxDelay           *time.Duration `koanf:"max_delay"`
	JitterMin          *float64       `koanf:"jitter_min"`
	JitterMax          *float64       `koanf:"jitter_max"`
	AtOnceAfterTimeout *bool          `koanf:"at_once_after_timeout"`
}

type pluginConfig struct {
	Name        string            `koanf:"name"`
	Path        string            `koanf:"path"`
	Args        []string          `koanf:"args"`
	Env         map[string]string `koanf:"env"`
	Processes   *int              `koanf:"processes"`
	Concurrency *int              `koanf:"concurrency"`
	Types       []string          `koanf:"types"`
	Isolated    *int              `koanf:"isolated"`
	Limits      limitsConfig      `koanf:"limits"`
	SHA256      string            `koanf:"sha256"`
	User        string            `koanf:"user"`
	Group       string            `koanf:"group"`
	Watch       *bool             `koanf:"watch"`
	Canary      canaryConfig      `koanf:"canary"`
}

type canaryConfig struct {
	Share  *float64       `koanf:"share"`
	Period *time.Duration `koanf:"period"`
	// MaxSlowdown is a factor; 0 for any.
	MaxSlowdown *float64 `koanf:"max_slowdown"`
}

type limitsConfig struct {
	Memory    *byteSize `koanf:"memory"`
	CPUs      *float64  `koanf:"cpus"`
	OpenFiles *uint64   `koanf:"open_files"`
	Processes *uint64   `koanf:"processes"`
}

type logConfig struct {
	Level  string         `koanf:"level"`
	Format string         `koanf:"format"`
	Jobs   runtime.JobLog `koanf:"jobs"`
}

// defaults is the configuration when nothing is set.
func defaults() config {
	name, err := os.Hostname()
	if err != nil || name == "" {
		name = "orchestrator"
	}
	safe, caps := durable, host.DefaultCaps()
	attempts, crashes, timeout, retry := job.DefaultMaxAttempts, job.DefaultMaxCrashes, job.DefaultTimeout, job.DefaultRetryPolicy()
	return config{
		Server: serverConfig{
			Address:           "127.0.0.1:8080",
			MaxBodyBytes:      api.DefaultMaxBodyBytes,
			MaxBatchBytes:     api.DefaultMaxBatchBytes,
			MaxReceivingBytes: api.DefaultMaxReceivingBytes,
			MaxHeaderBytes:    32 << 10,
			RequestTimeout:    api.DefaultRequestTimeout,
			ReadHeaderTimeout: 10 * time.Second,
			ReadTimeout:       time.Minute,
			WriteTimeout:      2 * time.Minute,
			IdleTimeout:       2 * time.Minute,
			MaxConnections:    10_000,
			TrustedProxies:    []string{},
		},
		Database: databaseConfig{MaxConnections: 20, StartWait: 5 * time.Minute},
		Embedded: embeddedConfig{DataDir: "data/postgres"},
		Worker: workerConfig{
			ID: name, Concurrency: 1000, Lease: 30 * time.Second, PollInterval: time.Second,
			DrainTimeout: 30 * time.Second, KillGrace: 5 * time.Second, Prefetch: 50 * time.Millisecond,
			ReportInterval: 200 * time.Millisecond,
			PluginsCgroup:  host.CgroupAuto,
			CrashPolicy:    runtime.Expire,
		},
		Jobs: jobsConfig{
			MaxProgressBytes: caps.Progress, MaxCheckpointBytes: caps.Checkpoint, MaxResultBytes: caps.Result,
			Default: typeConfig{
				MaxAttempts: &attempts, MaxCrashes: &crashes, Timeout: &timeout, Commit: &safe,
				Retry: retryConfig{
					Backoff: &retry.Backoff, InitialDelay: &retry.InitialDelay, Factor: &retry.Factor, MaxDelay: &retry.MaxDelay,
					JitterMin: &retry.JitterMin, JitterMax: &retry.JitterMax,
					AtOnceAfterTimeout: &retry.ImmediateAfterTimeout,
				},
			},
		},
		Security: defaultSecurity(), RateLimit: defaultRateLimit(), Tracing: tracingConfig{SampleRatio: 1},
		Log: logConfig{Level: "info", Format: "auto", Jobs: runtime.LogSampled},
	}
}
