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
	"github.com/holdfast-jobs/holdfast/plugin/host/internal/child"
	"github.com/holdfast-jobs/holdfast/plugin/internal/program"
	"github.com/holdfast-jobs/holdfast/plugin/internal/wire"
)

// Config is one plugin as it is configured, with every default resolved.
type Config struct {
	// Name is the plugin's name for operators, unique among the plugins.
	Name string
	// Path is the binary's.
	Path string
	Args []string
	// Env is the whole environment of the process but for what the handshake
	// adds. Nothing is inherited from the orchestrator, whose own environment
	// holds secrets.
	Env []string
	// Processes is how many processes are kept up; at least 1.
	Processes int
	// Concurrency is how many attempts a process is given at once; 0 leaves
	// it to the manifest, and to DefaultConcurrency where that has no wish.
	Concurrency int
	// Isolated is how many suspects may run isolated at once, each in a process of
	// its own beside those. It never exceeds what Processes may run at once, and
	// starts at a few until some of them have survived. 0 allows none.
	Isolated int
	Limits   Limits
	// Checksum is the SHA-256 of the binary in hex; empty for none. It is
	// compared at every launch, on the file that is then executed.
	Checksum string
	// User and Group, by name or number, are who the processes run as; empty
	// for the orchestrator's own. Only root may say another.
	User  string
	Group string
	// Types are the job types that it serves, of those that it declares. A type
	// that another plugin has served moves here. Empty: all that it declares,
	// except those that other plugins list or own.
	Types []string
	// elsewhere are the types that other plugins list, sorted.
	elsewhere []string
	// Watch has a changed file take the place of the version that serves.
	Watch  bool
	Canary Canary
}

// Canary is how a new version is tried on live work before it takes over.
type Canary struct {
	// Share is the part of the attempts that it gets, from 0 to 1.
	Share float64
	// Period is how long it is tried; 0 for not at all.
	Period time.Duration
	// MaxSlowdown is how many times as long as on the version that serves its
	// attempts may take; 0 for however long. Otherwise it is at least 1.
	MaxSlowdown float64
}

// Limits bound what a process may take together with everything that it forks. A
// field of 0 is no limit. A process that exceeds Memory or Processes is killed
// with all that it has forked. PluginStatus.Limits says how they are enforced on
// this machine.
type Limits struct {
	MemoryBytes uint64
	// CPUs is how many processors' time they may take: 0.5 is half of one.
	CPUs float64
	// OpenFiles holds for each process by itself (RLIMIT_NOFILE).
	OpenFiles uint64
	// Processes bounds processes and threads.
	Processes uint64
}

// DefaultProcesses is a bound on processes and threads that contains a fork bomb
// and is beyond what handlers need.
const DefaultProcesses = 1024

// DefaultIsolated is the most attempts that can have a process of their own at once
// where nobody says.
const DefaultIsolated = 16

// DefaultConcurrency is how many attempts a process is given at once when
// neither configuration nor manifest says.
const DefaultConcurrency = 10

// Settings are shared by all plugins of a host.
type Settings struct {
	// SocketDir is where each host makes a directory of its own, mode 0700,
	// for the sockets of its processes. It is made when missing. What hosts
	// that were killed left in it is swept at start.
	SocketDir string
	// StartTimeout bounds a launch, from fork to manifest.
	StartTimeout time.Duration
	// KillGrace is how long a process that has nothing more to do may take to
	// leave by itself.
	KillGrace time.Duration
	// ExitWindow is how long two signs of one death may lie apart: the end of the
	// stream and the exit, or the exit and the last outcome in the socket.
	ExitWindow time.Duration
	// HealthPeriod is how often a process is asked for its health, and
	// HealthTimeout how long it may take to answer, and how long it may leave
	// its stream unread, before it is killed.
	HealthPeriod  time.Duration
	HealthTimeout time.Duration
	Backoff       Backoff
	// Cgroup is where processes get cgroups of their own: CgroupAuto,
	// CgroupNone, or the absolute path of a cgroup v2 in which this process
	// may make others.
	Cgroup string
	// Warden is a command that is run beside the host, and once for each
	// process, in which Warden must be called with the last argument; empty for
	// none. Without it, what has left its process group outlives a host that is
	// killed until the next start, what has another environment too outlives its
	// process, and nothing ends attempts while the host is stopped.
	Warden []string
	// DrainTimeout is how long a version that was replaced may take to finish
	// what it has before it is killed.
	DrainTimeout time.Duration
	// Probation is how long after its promotion a version that keeps failing to
	// start or to stay up is replaced by the one before.
	Probation time.Duration
	// WatchPeriod is how often the files of plugins are looked at, and
	// WatchStable how long one must stay as it is to be taken for whole.
	WatchPeriod time.Duration
	WatchStable time.Duration
	// Ledger is asked whether a plugin may serve its job types, and before a
	// version takes over whether there are jobs that it could not do. It may be
	// nil: then nobody is.
	Ledger Ledger
	// Caps bound what handlers report.
	Caps Caps
	// Log hears of launches and deaths, and of what plugins print.
	Log *slog.Logger
	// LinesPerSecond bounds how many lines of output are logged for each
	// process. The others are counted.
	LinesPerSecond int
}

// Caps are the largest values that a handler may report, in bytes of JSON. Larger
// progress is dropped; a larger checkpoint or result fails the attempt for good.
type Caps struct {
	Progress   int
	Checkpoint int
	Result     int
}

// DefaultCaps are those of a plugin whose operator says nothing else.
func DefaultCaps() Caps {
	return Caps{
		Progress: wire.DefaultMaxProgressBytes, Checkpoint: wire.DefaultMaxCheckpointBytes, Result: wire.DefaultMaxResultBytes,
	}
}

// MaxCap is what a cap may be at most: with the payload, a checkpoint must fit into
// a message.
const MaxCap = wire.MaxMessageBytes / 2

// shortestCut is more than the log lines and error texts that are kept.
const shortestCut = 64 << 10

// longest is how much of a value or text is read.
func (c Caps) longest() int { return max(c.Progress, c.Checkpoint, c.Result, shortestCut) }

// Validate reports a cap that cannot be enforced.
func (c Caps) Validate() error {
	for what, cap := range map[string]int{"progress": c.Progress, "checkpoint": c.Checkpoint, "result": c.Result} {
		if cap < 1 || cap > MaxCap {
			return fmt.Errorf("a cap of %d bytes for a %s is not from 1 to %d", cap, what, MaxCap)
		}
	}
	return nil
}

// Backoff says how a plugin that fails is launched again.
type Backoff struct {
	// Min is the wait after the first failure; it doubles with each further
	// one up to Max. A tenth is added or taken off at random.
	Min time.Duration
	Max time.Duration
	// BreakAfter failures in a row mark the plugin as broken.
	BreakAfter int
	// StableAfter is how long a process must have been up for its death to
	// begin a new row of failures.
	StableAfter time.Duration
}

// What Settings.Cgroup may be besides a path.
const (
	// CgroupAuto looks below the cgroup that this process is in. It does
	// without where it may not make any there.
	CgroupAuto = cgroup.Auto
	// CgroupNone does without.
	CgroupNone = cgroup.None
)

// DefaultSettings returns what a production host starts from.
func DefaultSettings(socketDir string, log *slog.Logger) Settings {
	return Settings{
		SocketDir:     socketDir,
		StartTimeout:  10 * time.Second,
		KillGrace:     2 * time.Second,
		ExitWindow:    500 * time.Millisecond,
		HealthPeriod:  2 * time.Second,
		HealthTimeout: 10 * time.Second,
		Backoff: Backoff{
			Min: 100 * time.Millisecond, Max: 30 * time.Second,
			BreakAfter: 5, StableAfter: 10 * time.Second,
		},
		Cgroup:         CgroupAuto,
		DrainTimeout:   30 * time.Second,
		Probation:      time.Minute,
		WatchPeriod:    250 * time.Millisecond,
		WatchStable:    750 * time.Millisecond,
		Caps:           DefaultCaps(),
		Log:            log,
		LinesPerSecond: 100,
	}
}

// longestSocket is what go-plugin appends to the host's directory, and
// socketPathMax what the kernel allows for the whole.
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
	case s.StartTimeout <= 0 || s.KillGrace <= 0 || s.ExitWindow <= 0 || s.HealthPeriod <= 0 || s.HealthTimeout <= 0:
		return errors.New("start timeout, kill grace, exit window, health period and health timeout must be above zero")
	case s.Backoff.Min <= 0 || s.Backoff.Max < s.Backoff.Min || s.Backoff.BreakAfter < 1 || s.Backoff.StableAfter <= 0:
		return errors.New("backoff must have 0 < min ≤ max, at least 1 failure before it breaks, and a stable time above zero")
	case s.Cgroup != CgroupAuto && s.Cgroup != CgroupNone && !filepath.IsAbs(s.Cgroup):
		return fmt.Errorf("cgroup %q is neither %s nor %s nor an absolute path", s.Cgroup, CgroupAuto, CgroupNone)
	case s.DrainTimeout <= 0 || s.Probation <= 0 || s.WatchPeriod <= 0 || s.WatchStable <= 0:
		return errors.New("drain timeout, probation, watch period and watch still must be above zero")
	case s.LinesPerSecond < 1:
		return errors.New("lines per second must be at least 1")
	}
	return s.Caps.Validate()
}

func (c Config) validate() error {
	if c.Name == "" {
		return errors.New("a plugin has no name")
	}
	if err := c.check(); err != nil {
		return fmt.Errorf("plugin %s: %w", c.Name, err)
	}
	return nil
}

func (c Config) check() error {
	if err := program.Check(c.Path); err != nil {
		return err
	}
	switch {
	case c.Processes < 1:
		return fmt.Errorf("%d processes are configured, at least 1 is needed", c.Processes)
	case c.Concurrency < 0:
		return fmt.Errorf("concurrency %d is below zero", c.Concurrency)
	case c.Isolated < 0:
		return fmt.Errorf("%d isolated attempts are below zero", c.Isolated)
	case !(c.Limits.CPUs >= 0):
		return fmt.Errorf("%v cpus are below zero", c.Limits.CPUs)
	case c.Canary.Share < 0 || c.Canary.Share > 1:
		return fmt.Errorf("a canary share of %g is not from 0 to 1", c.Canary.Share)
	case c.Canary.Period < 0:
		return fmt.Errorf("a canary period of %s is below zero", c.Canary.Period)
	case c.Canary.MaxSlowdown != 0 && !(c.Canary.MaxSlowdown >= 1):
		return fmt.Errorf("a canary that may be %v times as slow makes no sense: it is at least 1, or 0 for any", c.Canary.MaxSlowdown)
	}
	if _, err := child.LookUp(c.User, c.Group); err != nil {
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
		if err := config.validate(); err != nil {
			return err
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

// resolved is the configuration with paths that do not depend on the directory
// at the time of a launch, and with what each plugin leaves to the others.
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

// leavesOut reports whether the plugin may not serve the job type.
func (c Config) leavesOut(jobType string) bool {
	return slices.Contains(c.elsewhere, jobType) || len(c.Types) > 0 && !slices.Contains(c.Types, jobType)
}

// launchesLike reports whether the processes are the same under either
// configuration, as long as the file is and they serve the same job types.
func (c Config) launchesLike(other Config) bool {
	c.Watch, c.Canary, c.Isolated = other.Watch, other.Canary, other.Isolated
	c.Types, c.elsewhere = other.Types, other.elsewhere
	return reflect.DeepEqual(c, other)
}
