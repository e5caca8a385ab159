package job

import (
	"errors"
	"fmt"
	"time"
)

// ErrNoPlugin says that the orchestrator has no plugin of that name.
var ErrNoPlugin = errors.New("no such plugin")

// TypeOwnedError refuses a plugin's claim to a job type that another plugin
// owns.
type TypeOwnedError struct {
	Type string
	// Plugin is the owner's name.
	Plugin string
}

func (e *TypeOwnedError) Error() string {
	return fmt.Sprintf("job type %s belongs to plugin %s", e.Type, e.Plugin)
}

// PluginState is the state of a plugin, for operators.
type PluginState string

// The states of a plugin.
const (
	// PluginStarting: no process is up yet, or again.
	PluginStarting PluginState = "starting"
	// PluginUp: at least one process is.
	PluginUp PluginState = "up"
	// PluginBroken: no process is up, and the last launches have failed in a
	// row or were refused. It is still launched now and then.
	PluginBroken PluginState = "broken"
	// PluginDisabled: an operator has switched it off. Its jobs stay queued.
	PluginDisabled PluginState = "disabled"
)

// PluginVersion identifies a version of a plugin.
type PluginVersion struct {
	// Version is what its manifest says; empty before it was ever up.
	Version string
	// Digest is the SHA-256 of the binary in hex.
	Digest string
}

// PluginStatus describes a plugin of one orchestrator for operators.
type PluginStatus struct {
	Name string
	// Path is the configured binary's.
	Path string
	// PluginVersion is the version that serves, or served last.
	PluginVersion
	State PluginState
	// Types are the job types it serves, or served last.
	Types []string
	// SkippedTypes are those it declares but does not serve, because the
	// configuration gives them to another plugin or does not list them.
	SkippedTypes []string
	// PIDs are those of the processes that are up and serve.
	PIDs []int
	// Processes is how many should be up; PIDs are those that are.
	Processes int
	// Restarts counts the launches that failed and the processes that ended.
	Restarts int
	// Crashes counts the processes among them that were up and neither left
	// nor were killed because an attempt had to stop.
	Crashes int
	// LastError is why the last of them failed or ended; empty when none has.
	LastError string
	// SkipReason is why the file at Path does not serve and no swap is begun: it cannot be
	// read, or was skipped when the plugin was enabled. Otherwise it is empty.
	SkipReason string
	// InFlight is how many attempts its processes have, Free how many more
	// they can take.
	InFlight int
	Free     int
	// Isolated is how many attempts have, or wait for, a process of their own. PIDs and
	// InFlight do not include them.
	Isolated int
	// Limits says of each limit that is configured how it is enforced on this
	// machine.
	Limits []Enforcement
	// Draining is how many attempts run on in versions that take no more.
	Draining int
	// Candidate is the version that is to follow; nil while there is none.
	Candidate *PluginCandidate
	// LastSwap is how the last replacement went, or goes; nil before the first.
	LastSwap *PluginSwap
}

// Enforcement says how one limit is enforced on this machine.
type Enforcement struct {
	// Limit is the limit's key in the configuration.
	Limit string
	// By is the means, such as cgroup or rlimit.
	By string
	// Gap is what the limit does not catch; empty for nothing.
	Gap string
}

// CandidateState is how far a version is on its way to serve.
type CandidateState string

// The states of a candidate.
const (
	// CandidateStarting: its processes are launched, its manifest is compared.
	CandidateStarting CandidateState = "starting"
	// CandidateOnTrial: it has a share of the attempts.
	CandidateOnTrial CandidateState = "canary"
)

// PluginCandidate is a version that runs beside the one that serves.
type PluginCandidate struct {
	PluginVersion
	State CandidateState
	PIDs  []int
	// InFlight is how many attempts it has.
	InFlight int
	// Trial is how it does; zero before it is on trial.
	Trial Trial
}

// Trial compares a candidate with the version that serves at the same time.
type Trial struct {
	// Ended and Failed count the candidate's attempts.
	Ended, Failed int
	// ServingEnded and ServingFailed count those of the version that serves.
	ServingEnded, ServingFailed int
	// Slowest is the job type at which the candidate is slowest in comparison; nil
	// where there is nothing to compare.
	Slowest *Pace
}

// Pace compares how long the latest attempts at a job type took that succeeded.
type Pace struct {
	JobType string
	// Median is the candidate's, ServingMedian that of the version that serves.
	Median, ServingMedian time.Duration
}

// SwapTrigger says what has begun a swap.
type SwapTrigger string

// The triggers of a swap.
const (
	SwapByFile    SwapTrigger = "file"
	SwapByConfig  SwapTrigger = "config"
	SwapByRequest SwapTrigger = "request"
	// SwapByRestart replaces a version by itself.
	SwapByRestart SwapTrigger = "restart"
	// SwapByFailure replaces a version that keeps failing soon after its
	// promotion by the one before.
	SwapByFailure SwapTrigger = "failure"
)

// SwapResult says how a swap has ended.
type SwapResult string

// The results of a swap.
const (
	// SwapPromoted: the new version serves.
	SwapPromoted SwapResult = "promoted"
	// SwapRolledBack: the new version was started and failed. The old one
	// serves on.
	SwapRolledBack SwapResult = "rolled_back"
	// SwapRefused: the new version may not serve. The old one serves on.
	SwapRefused SwapResult = "refused"
	// SwapAbandoned: the swap was broken off for a reason that has nothing to
	// do with the new version.
	SwapAbandoned SwapResult = "abandoned"
)

// PluginSwap is one replacement of the version that serves by another.
type PluginSwap struct {
	Trigger SwapTrigger
	From    PluginVersion
	To      PluginVersion
	BegunAt time.Time
	// EndedAt is zero, and Result empty, while it is under way.
	EndedAt time.Time
	Result  SwapResult
	// Trial is how the new version did on trial; nil if it was not tried, or none
	// of its attempts has ended.
	Trial *Trial
	// Reason says why the new version does not serve, or for SwapByFailure why
	// the other does not any more; empty otherwise.
	Reason string
}
