package job

import (
	"errors"
	"fmt"
	"time"
)

// ErrNoPlugin means that the orchestrator has no plugin of that name.
var ErrNoPlugin = errors.New("no such plugin")

// TypeOwnedError means that another plugin owns the job type.
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
	// PluginStarting: no process is up, and one is being started.
	PluginStarting PluginState = "starting"
	// PluginUp: at least one process is.
	PluginUp PluginState = "up"
	// PluginBroken: no process is up, and the last launches failed or were refused. A
	// launch is still tried now and then.
	PluginBroken PluginState = "broken"
	// PluginDisabled: an operator has disabled it. Its jobs stay queued.
	PluginDisabled PluginState = "disabled"
)

// PluginVersion identifies a version of a plugin.
type PluginVersion struct {
	// Version is the version in its manifest; empty before it was first up.
	Version string
	// Digest is the SHA-256 of the binary in hex.
	Digest string
}

// PluginStatus describes a plugin of one orchestrator to operators.
type PluginStatus struct {
	Name string
	// Path is the path of the configured binary.
	Path string
	// PluginVersion is the serving version, or the last one that served.
	PluginVersion
	State PluginState
	// Types are the job types that it serves, or served last.
	Types []string
	// SkippedTypes are those it declares but does not serve, because the
	// configuration gives them to another plugin or does not list them.
	SkippedTypes []string
	// PIDs are the serving processes that are up.
	PIDs []int
	// Processes is how many should be up.
	Processes int
	// Restarts counts failed launches and processes that ended.
	Restarts int
	// Crashes counts those of them that were up and died by themselves: they had not been
	// asked to end, nor killed to stop an attempt.
	Crashes int
	// LastError is why the last of them failed or ended; empty for none.
	LastError string
	// SkipReason is why the file at Path is not swapped in: it cannot be read, or was
	// skipped when the plugin was enabled. Otherwise it is empty.
	SkipReason string
	// InFlight is how many attempts its processes run, Free how many more they can take.
	InFlight int
	Free     int
	// Isolated is how many attempts have a process of their own, or wait for one. PIDs and
	// InFlight do not include them.
	Isolated int
	// Limits says how each configured limit is enforced on this machine.
	Limits []Enforcement
	// Draining is how many attempts still run in versions that start no more.
	Draining int
	// Candidate is the version of the swap under way; nil for none.
	Candidate *PluginCandidate
	// LastSwap is the last swap, or the one under way; nil before the first.
	LastSwap *PluginSwap
}

// Enforcement says how one limit is enforced on this machine.
type Enforcement struct {
	// Limit is the limit's key in the configuration.
	Limit string
	// By is the means, such as cgroup or rlimit.
	By string
	// Gap is what the limit does not cover; empty for nothing.
	Gap string
}

// CandidateState is the state of a candidate.
type CandidateState string

// The states of a candidate.
const (
	// CandidateStarting: its processes are starting, and its manifest is checked.
	CandidateStarting CandidateState = "starting"
	// CandidateCanary: it gets a share of the attempts.
	CandidateCanary CandidateState = "canary"
)

// PluginCandidate is a version that runs beside the serving one.
type PluginCandidate struct {
	PluginVersion
	State CandidateState
	PIDs  []int
	// InFlight is how many attempts it runs.
	InFlight int
	// Trial compares it so far; zero before the canary.
	Trial Trial
}

// Trial compares a candidate with the serving version over the same time.
type Trial struct {
	// Ended and Failed count the candidate's attempts.
	Ended, Failed int
	// ServingEnded and ServingFailed count those of the serving version.
	ServingEnded, ServingFailed int
	// Slowest is the job type where the candidate has slowed down most; nil if there is
	// nothing to compare.
	Slowest *Pace
}

// Pace compares how long the latest successful attempts at a job type took.
type Pace struct {
	JobType string
	// Median is the candidate's, ServingMedian the serving version's.
	Median, ServingMedian time.Duration
}

// SwapTrigger says why a swap began.
type SwapTrigger string

// The triggers of a swap.
const (
	SwapByFile    SwapTrigger = "file"
	SwapByConfig  SwapTrigger = "config"
	SwapByRequest SwapTrigger = "request"
	// SwapByRestart replaces a version by new processes of itself.
	SwapByRestart SwapTrigger = "restart"
	// SwapByFailure brings the previous version back, because the new one kept failing
	// soon after its promotion.
	SwapByFailure SwapTrigger = "failure"
)

// SwapResult says how a swap ended.
type SwapResult string

// The results of a swap.
const (
	// SwapPromoted: the new version serves.
	SwapPromoted SwapResult = "promoted"
	// SwapRolledBack: the new version was started and failed. The old one keeps serving.
	SwapRolledBack SwapResult = "rolled_back"
	// SwapRefused: the new version may not serve. The old one keeps serving.
	SwapRefused SwapResult = "refused"
	// SwapAbandoned: the swap was ended for a reason that has nothing to do with the new
	// version.
	SwapAbandoned SwapResult = "abandoned"
)

// PluginSwap replaces the serving version with another.
type PluginSwap struct {
	Trigger SwapTrigger
	From    PluginVersion
	To      PluginVersion
	BegunAt time.Time
	// EndedAt is zero, and Result empty, while it is under way.
	EndedAt time.Time
	Result  SwapResult
	// Trial is the comparison during the canary; nil if there was none, or no attempt of the
	// new version has ended.
	Trial *Trial
	// Reason says why the new version does not serve or, for SwapByFailure, why the other
	// one no longer does; otherwise it is empty.
	Reason string
}
