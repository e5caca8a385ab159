// Package config is what you can set about the orchestrator: the keys, where they are
// read from, their defaults, and what is rejected.
package config

import (
	"os"
	"time"

	"github.com/holdfast-jobs/holdfast/api"
	"github.com/holdfast-jobs/holdfast/plugin/host"
	"github.com/holdfast-jobs/holdfast/runtime"
	"github.com/holdfast-jobs/holdfast/runtime/job"
)

// Config is everything that you can set. config.yaml at the root of the
// repository documents each key; a test compares the two. A pointer is a setting
// that may be absent.
type Config struct {
	// Roles are the names of those of this process; see job.ParseRoles.
	Roles     []string  `koanf:"roles"`
	Server    Server    `koanf:"server"`
	Database  Database  `koanf:"database"`
	Embedded  Embedded  `koanf:"embedded"`
	Worker    Worker    `koanf:"worker"`
	Jobs      Jobs      `koanf:"jobs"`
	Limits    JobLimits `koanf:"limits"`
	Schedules Schedules `koanf:"schedules"`
	Retention Retention `koanf:"retention"`
	Events    Events    `koanf:"events"`
	Plugins   []Plugin  `koanf:"plugins"`
	UI        UI        `koanf:"ui"`
	Security  Security  `koanf:"security"`
	RateLimit RateLimit `koanf:"rate_limit"`
	Tracing   Tracing   `koanf:"tracing"`
	Log       Log       `koanf:"log"`

	// Source is the absolute path of the file that was read; empty for none.
	Source string
	// HasPlugins reports whether the file has a plugins section, even an empty one.
	HasPlugins bool
	// HasLimits reports whether any source has a limits section, even an empty one.
	HasLimits bool
	// HasSchedules is the same for a schedules section.
	HasSchedules bool
}

// Server is how the API listens and what it accepts.
type Server struct {
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

// Database is your PostgreSQL. With an empty URL, Embedded holds.
type Database struct {
	URL DatabaseURL `koanf:"url"`
	// DirectURL leads past the pooler that URL leads through; empty for no pooler.
	DirectURL DatabaseURL `koanf:"direct_url"`
	// ReplicaURL leads to standbys that answer what may be a little old; empty for none.
	ReplicaURL DatabaseURL `koanf:"replica_url"`
	// ReplicaMaxLag is how old that may be.
	ReplicaMaxLag  time.Duration `koanf:"replica_max_lag"`
	MaxConnections int32         `koanf:"max_connections"`
	// StartWait bounds how long a start waits for the database; 0 means no wait.
	StartWait time.Duration `koanf:"start_wait"`
	// CellNumber is nil for a database that is no cell.
	CellNumber *int `koanf:"cell"`
}

// Cell is which of several cells the database is, if any.
func (d Database) Cell() job.Cell {
	if d.CellNumber == nil {
		return job.Cell{}
	}
	return job.CellOf(uint8(*d.CellNumber)) //nolint:gosec // it was checked
}

// Embedded is the PostgreSQL that the orchestrator starts itself.
type Embedded struct {
	DataDir string `koanf:"data_dir"`
	BinDir  string `koanf:"bin_dir"`
}

// Worker is how jobs are claimed and run.
type Worker struct {
	ID           string        `koanf:"id"`
	Concurrency  int           `koanf:"concurrency"`
	Lease        time.Duration `koanf:"lease"`
	PollInterval time.Duration `koanf:"poll_interval"`
	DrainTimeout time.Duration `koanf:"drain_timeout"`
	KillGrace    time.Duration `koanf:"kill_grace"`
	Prefetch     time.Duration `koanf:"prefetch"`

	ReportInterval time.Duration `koanf:"report_interval"`
	// Ageing is 0 for none.
	Ageing time.Duration `koanf:"ageing"`
	// PluginsCgroup is auto, none or a path; see host.Settings.
	PluginsCgroup string              `koanf:"plugins_cgroup"`
	CrashPolicy   runtime.CrashPolicy `koanf:"crash_policy"`
}

// Events is which ends of jobs become events, for GET /events.
type Events struct {
	// Keep is 0 for no events.
	Keep       time.Duration `koanf:"keep"`
	Most       int64         `koanf:"most"`
	Types      []string      `koanf:"types"`
	MaxStreams int           `koanf:"max_streams"`
}

// Log is what the orchestrator logs, and how.
type Log struct {
	Level  string         `koanf:"level"`
	Format string         `koanf:"format"`
	Jobs   runtime.JobLog `koanf:"jobs"`
}

// Defaults returns the configuration of an orchestrator for which you set nothing.
func Defaults() Config {
	name, err := os.Hostname()
	if err != nil || name == "" {
		name = "orchestrator"
	}
	safe, caps, nobody := Durable, host.DefaultCaps(), ""
	attempts, crashes, timeout, retry := job.DefaultMaxAttempts, job.DefaultMaxCrashes, job.DefaultTimeout, job.DefaultRetryPolicy()
	return Config{
		Roles: job.AllRoles().Names(),
		Server: Server{
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
		Database: Database{MaxConnections: 20, StartWait: 5 * time.Minute, ReplicaMaxLag: 10 * time.Second},
		Embedded: Embedded{DataDir: "data/postgres"},
		Worker: Worker{
			ID: name, Concurrency: 1000, Lease: 30 * time.Second, PollInterval: time.Second,
			DrainTimeout: 30 * time.Second, KillGrace: 5 * time.Second, Prefetch: 50 * time.Millisecond,
			ReportInterval: 200 * time.Millisecond,
			PluginsCgroup:  host.CgroupAuto,
			CrashPolicy:    runtime.Expire,
		},
		Jobs: Jobs{
			MaxProgressBytes: caps.Progress, MaxCheckpointBytes: caps.Checkpoint, MaxResultBytes: caps.Result,
			MaxFollowUps: caps.FollowUps, MaxFollowUpBytes: caps.FollowUpBytes,
			Default: Type{
				MaxAttempts: &attempts, MaxCrashes: &crashes, Timeout: &timeout, Commit: &safe, CallbackURL: &nobody,
				Retry: Retry{
					Backoff: &retry.Backoff, InitialDelay: &retry.InitialDelay, Factor: &retry.Factor, MaxDelay: &retry.MaxDelay,
					JitterMin: &retry.JitterMin, JitterMax: &retry.JitterMax,
					ImmediateAfterTimeout: &retry.ImmediateAfterTimeout,
				},
			},
		},
		Retention: Retention{Succeeded: Keep, Canceled: Keep, Dead: Keep, Keys: Keep, Audit: "9600h"},
		Events:    Events{Most: 1_000_000, Types: []string{}, MaxStreams: 1000},
		UI:        UI{Enabled: true},
		Security:  defaultSecurity(), RateLimit: defaultRateLimit(), Tracing: Tracing{SampleRatio: 1},
		Log: Log{Level: "info", Format: "auto", Jobs: runtime.LogSampled},
	}
}
