package host

import (
	"encoding/hex"
	"errors"
	"fmt"
	"log/slog"
	"path/filepath"
	"reflect"
	"slices"
	"time"

	"github.com/holdfast-jobs/holdfast/plugin/host/internal/cgroup"
	"github.com/holdfast-jobs/holdfast/plugin/host/internal/connection"
	"github.com/holdfast-jobs/holdfast/plugin/host/internal/message"
	"github.com/holdfast-jobs/holdfast/plugin/host/internal/osprocess"
	"github.com/holdfast-jobs/holdfast/plugin/internal/executable"
	"github.com/holdfast-jobs/holdfast/plugin/internal/handlerv1"
	"github.com/holdfast-jobs/holdfast/runtime/job"
)

// Config is the configuration of one plugin, with every default resolved.
type Config struct {
	// Name is the plugin's name for operators, unique among the plugins.
	Name string
	// Path is that of the binary.
	Path string
	Args []string
	// Env is the whole environment of the process, except for what the handshake adds.
	// A process inherits nothing from the orchestrator, whose own environment holds
	// secrets.
	Env []string
	// Processes is how many processes are kept up; at least 1.
	Processes int
	// Concurrency is how many attempts a process gets at once. 0 uses the manifest's
	// value, or DefaultConcurrency if the manifest has none.
	Concurrency int
	// Isolated is how many suspects may run isolated at once, each in its own process
	// in addition to Processes. At first only a few may; more may as suspects survive,
	// but never more than Processes may run at once. 0 allows none.
	Isolated int
	// StartTimeout bounds a launch, from fork to manifest; above 0 and at most MaxStartTimeout.
	// A changed value counts from the next launch on, and is no reason to swap.
	StartTimeout time.Duration
	Limits       Limits
	// Checksum is the SHA-256 of the binary in hex; empty for any. Each launch compares
	// it with the file that it executes.
	Checksum string
	// User and Group are the user and group that the processes run as, by name or
	// number; empty for the orchestrator's own. Only root may set another user.
	User  string
	Group string
	// Types selects the job types to serve from those that the plugin declares. A type
	// that another plugin served before moves to this one. Empty selects every declared
	// type that no other plugin lists or owns.
	Types []string
	// elsewhere are the types that other plugins list, sorted.
	elsewhere []string
	// Watch swaps the plugin when its file changes.
	Watch  bool
	Canary Canary
}

// Canary is how to try a new version on live work before it takes over.
type Canary struct {
	// Share is the candidate's part of the attempts, from 0 to 1.
	Share float64
	// Period is how long the trial lasts; 0 for no trial.
	Period time.Duration
	// MaxSlowdown limits how long the candidate's attempts may take, as a multiple of
	// the serving version's time, at least 1; 0 for no limit.
	MaxSlowdown float64
}

// Limits bound what a process may use together with everything that it forks. 0 is no
// limit. A process that exceeds MemoryBytes or Processes is killed with all that it has
// forked. The status of a plugin says how limits are enforced on this machine.
type Limits = cgroup.Limits

// Defaults of a Config.
const (
	// DefaultProcesses is a limit on processes and threads that contains a fork bomb
	// and is more than plugins need.
	DefaultProcesses = 1024
	// DefaultIsolated is how many suspects run isolated at once.
	DefaultIsolated = 16
	// DefaultConcurrency is how many attempts a process gets at once if neither the
	// configuration nor the manifest sets it.
	DefaultConcurrency = 10
	// DefaultStartTimeout bounds a launch.
	DefaultStartTimeout = 10 * time.Second
	// MaxStartTimeout is the longest such bound: a plugin that hangs is noticed within this
	// time.
	MaxStartTimeout = 10 * time.Minute
)

// Settings are shared by all plugins of a host.
type Settings struct {
	connection.Settings
	// SocketDir is where each host makes its own directory, mode 0700, for the sockets
	// of its processes. It is created if it is missing. Start removes what killed hosts
	// left in it.
	SocketDir string
	Backoff   Backoff
	// Cgroup is where processes get their cgroups: CgroupAuto, CgroupNone, or the
	// absolute path of a cgroup v2 in which this process may make others.
	Cgroup string
	// DrainTimeout is how long a version that was replaced may take to finish its
	// attempts before it is killed.
	DrainTimeout time.Duration
	// Probation is the time after a promotion in which the predecessor returns if the
	// new version keeps failing.
	Probation time.Duration
	// WatchPeriod is how often to look at the files of plugins, and WatchStable how
	// long a file must stay unchanged to count as complete.
	WatchPeriod time.Duration
	WatchStable time.Duration
	// Ledger knows the jobs, and which plugin owns a job type; nil allows everything.
	Ledger Ledger
	// Log receives launches, deaths, and what plugins print.
	Log *slog.Logger
	// Happened receives what happens to plugins, without anything that they print; nil for
	// nobody. It must not wait for anything.
	Happened func(job.PluginEvent)
	// keeper is the program that runs as the keeper of each process; empty for this
	// program. Tests set a smaller one.
	keeper string
}

// Caps are the largest values that a handler may report.
type Caps = connection.Caps

// DefaultCaps returns the caps that apply unless an operator sets others.
func DefaultCaps() Caps { return connection.DefaultCaps() }

// MaxCap is the largest cap: payload and checkpoint must fit into one message.
const MaxCap = connection.MaxCap

// The largest caps for follow-ups.
const (
	MaxFollowUps     = connection.MaxFollowUps
	MaxFollowUpBytes = connection.MaxFollowUpBytes
)

// Backoff says when to relaunch a plugin that has failed.
type Backoff struct {
	// Min is the wait after the first failure. It doubles with each further failure up
	// to Max, and varies at random by up to a tenth.
	Min time.Duration
	Max time.Duration
	// BreakAfter failures in a row mark the plugin as broken.
	BreakAfter int
	// StableAfter is how long a process must be up to reset the count of failures.
	StableAfter time.Duration
}

// Values of Settings.Cgroup besides a path.
const (
	// CgroupAuto makes cgroups below that of this process, if it may.
	CgroupAuto = cgroup.Auto
	// CgroupNone makes no cgroups.
	CgroupNone = cgroup.None
)

// DefaultSettings returns the settings of a production host.
func DefaultSettings(socketDir string, log *slog.Logger) Settings {
	return Settings{
		Settings: connection.Settings{
			KillGrace:      2 * time.Second,
			ExitWindow:     500 * time.Millisecond,
			HealthPeriod:   2 * time.Second,
			HealthTimeout:  10 * time.Second,
			Caps:           DefaultCaps(),
			LinesPerSecond: 100,
		},
		SocketDir: socketDir,
		Backoff: Backoff{
			Min: 100 * time.Millisecond, Max: 30 * time.Second,
			BreakAfter: 5, StableAfter: 10 * time.Second,
		},
		Cgroup:       CgroupAuto,
		DrainTimeout: 30 * time.Second,
		Probation:    time.Minute,
		WatchPeriod:  250 * time.Millisecond,
		WatchStable:  750 * time.Millisecond,
		Log:          log,
	}
}

// longestSocket is the longest path below SocketDir. socketPathMax is the kernel's
// limit for the whole path.
const (
	longestSocket = "/hf-4294967295/plugin-dir4294967295/plugin4294967295"
	socketPathMax = 103
)

func (s Settings) validate() error {
	switch {
	case s.Log == nil:
		return errors.New("no logger")
	case !filepath.IsAbs(s.SocketDir):
		return fmt.Errorf("socket directory %q is not an absolute path", s.SocketDir)
	case len(s.SocketDir)+len(longestSocket) > socketPathMax:
		return fmt.Errorf("socket directory %q is too long: at most %d bytes", s.SocketDir, socketPathMax-len(longestSocket))
	case s.Backoff.Min <= 0 || s.Backoff.Max < s.Backoff.Min || s.Backoff.BreakAfter < 1 || s.Backoff.StableAfter <= 0:
		return errors.New("backoff must have 0 < min ≤ max, at least 1 failure before it breaks, and a stable time above zero")
	case s.Cgroup != CgroupAuto && s.Cgroup != CgroupNone && !filepath.IsAbs(s.Cgroup):
		return fmt.Errorf("cgroup %q is neither %s nor %s nor an absolute path", s.Cgroup, CgroupAuto, CgroupNone)
	case s.DrainTimeout <= 0 || s.Probation <= 0 || s.WatchPeriod <= 0 || s.WatchStable <= 0:
		return errors.New("drain timeout, probation, watch period and watch stable time must be above zero")
	}
	return s.Settings.Validate()
}

// CheckStartTimeout returns an error, for users, if a plugin cannot have this start timeout.
func CheckStartTimeout(d time.Duration) error {
	if d <= 0 || d > MaxStartTimeout {
		return fmt.Errorf("%s is not above 0s and at most %s", d, MaxStartTimeout)
	}
	return nil
}

func (c Config) validate() error {
	if err := executable.Check(c.Path); err != nil {
		return err
	}
	switch {
	case c.Processes < 1:
		return fmt.Errorf("processes %d is below 1", c.Processes)
	case c.Concurrency < 0:
		return fmt.Errorf("concurrency %d is below zero", c.Concurrency)
	case c.Isolated < 0:
		return fmt.Errorf("isolated %d is below zero", c.Isolated)
	case !(c.Limits.CPUs >= 0):
		return fmt.Errorf("limits.cpus %v is below zero", c.Limits.CPUs)
	case c.Canary.Share < 0 || c.Canary.Share > 1:
		return fmt.Errorf("canary share %g is not from 0 to 1", c.Canary.Share)
	case c.Canary.Period < 0:
		return fmt.Errorf("canary period %s is below zero", c.Canary.Period)
	case c.Canary.MaxSlowdown != 0 && !(c.Canary.MaxSlowdown >= 1):
		return fmt.Errorf("canary max slowdown %v is neither at least 1 nor 0 for no limit", c.Canary.MaxSlowdown)
	}
	if err := CheckStartTimeout(c.StartTimeout); err != nil {
		return fmt.Errorf("start timeout: %w", err)
	}
	if _, err := osprocess.LookUp(c.User, c.Group); err != nil {
		return err
	}
	if digest, err := hex.DecodeString(c.Checksum); err != nil || len(digest) != 0 && len(digest) != 32 {
		return errors.New("the checksum is not a SHA-256 in hex")
	}
	return nil
}

func validateAll(plugins []Config) error {
	names := make(map[string]bool)
	listed := make(map[string]string)
	for _, config := range plugins {
		if config.Name == "" {
			return errors.New("a plugin has no name")
		}
		if err := config.validate(); err != nil {
			return fmt.Errorf("plugin %s: %w", config.Name, err)
		}
		if names[config.Name] {
			return fmt.Errorf("plugin %s is configured twice", config.Name)
		}
		names[config.Name] = true
		for _, jobType := range config.Types {
			if other, twice := listed[jobType]; twice {
				return fmt.Errorf("plugin %s: job type %s is listed twice, also under plugin %s", config.Name, jobType, other)
			}
			listed[jobType] = config.Name
		}
	}
	return nil
}

// resolved returns the plugins with absolute paths, and with elsewhere filled in.
func resolved(plugins []Config) []Config {
	plugins = slices.Clone(plugins)
	for i := range plugins {
		c := &plugins[i]
		if path, err := filepath.Abs(c.Path); err == nil {
			c.Path = path
		}
		c.elsewhere = nil
		for _, other := range plugins {
			if other.Name != c.Name {
				c.elsewhere = append(c.elsewhere, other.Types...)
			}
		}
		slices.Sort(c.elsewhere)
	}
	return plugins
}

// skips reports whether the configuration excludes the job type from the plugin.
func (c Config) skips(jobType string) bool {
	return slices.Contains(c.elsewhere, jobType) || len(c.Types) > 0 && !slices.Contains(c.Types, jobType)
}

// launchesLike reports whether both configurations launch the same processes, given the
// same file and job types.
func (c Config) launchesLike(other Config) bool {
	c.Watch, c.Canary, c.Isolated, c.StartTimeout = other.Watch, other.Canary, other.Isolated, other.StartTimeout
	c.Types, c.elsewhere = other.Types, other.elsewhere
	return reflect.DeepEqual(c, other)
}

// capacity is how many attempts a process may have at once. The manifest may be nil.
func (c Config) capacity(m *message.Manifest) int {
	switch {
	case c.Concurrency > 0:
		return c.Concurrency
	case m != nil && m.Concurrency > 0:
		return m.Concurrency
	}
	return DefaultConcurrency
}

// CheckManifest says why a host would refuse the manifest; nil if it would accept it.
func CheckManifest(raw *handlerv1.DescribeResponse) error {
	_, err := message.ReadManifest("", raw)
	return err
}
