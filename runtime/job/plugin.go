package job

import (
	"errors"
	"fmt"
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

// CandidateState is the state of a candidate.
type CandidateState string

// The states of a candidate.
const (
	// CandidateStarting: its processes are starting, and its manifest is checked.
	CandidateStarting CandidateState = "starting"
	// CandidateCanary: it gets a share of the attempts.
	CandidateCanary CandidateState = "canary"
)

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
