package host

import "fmt"

// deployState is how far a plugin has come in a deploy. docs/explanation/deploys.md has
// the diagram. The fleet's lock guards it.
type deployState string

// The states of a plugin.
const (
	// stateServing: one version serves.
	stateServing deployState = "serving"
	// stateProbation: one version serves, and the one before it returns if this one
	// keeps failing.
	stateProbation deployState = "probation"
	// stateStarting: a candidate launches beside the serving version, and the two
	// are compared.
	stateStarting deployState = "starting"
	// stateCanary: the candidate gets a share of the attempts.
	stateCanary deployState = "canary"
	// statePromoting: the candidate has proved itself, and takes over as soon as all
	// its processes are up.
	statePromoting deployState = "promoting"
	// stateDisabling: an operator has disabled the plugin, and its conductor has not
	// retired the serving version yet.
	stateDisabling deployState = "disabling"
	// stateDisabled: no version serves, until an operator enables the plugin.
	stateDisabled deployState = "disabled"
	// stateClosed: the plugin was removed, or the host is closing.
	stateClosed deployState = "closed"
)

// deployEvent is what moves a plugin from one state to another.
type deployEvent string

// The events of a plugin.
const (
	// eventSwap: a swap begins, for any trigger.
	eventSwap deployEvent = "swap"
	// eventTry: the candidate has started and goes on trial.
	eventTry deployEvent = "try"
	// eventPass: the candidate has proved itself.
	eventPass deployEvent = "pass"
	// eventPromote: the candidate serves, and its predecessor is kept.
	eventPromote deployEvent = "promote"
	// eventReplace: the candidate serves, and there is no predecessor to return to:
	// none was ever up, or the candidate is that predecessor.
	eventReplace deployEvent = "replace"
	// eventRestart: new processes of the same version serve.
	eventRestart deployEvent = "restart"
	// eventReject: the candidate does not serve.
	eventReject deployEvent = "reject"
	// eventSettle: the probation is over.
	eventSettle deployEvent = "settle"
	// eventDisable: an operator disables the plugin.
	eventDisable deployEvent = "disable"
	// eventRetire: the serving version is retired.
	eventRetire deployEvent = "retire"
	// eventEnable: an operator enables the plugin.
	eventEnable deployEvent = "enable"
	// eventEnableOnProbation: the same, with another version than the one that
	// served before, which is kept.
	eventEnableOnProbation deployEvent = "enable on probation"
	// eventClose: the plugin stops for good.
	eventClose deployEvent = "close"
)

// In the table, stateBefore means the state in which the swap began.
const stateBefore deployState = "the state before the swap"

// deployTable lists every legal event of each state, and the state that follows. All
// other events are errors.
var deployTable = map[deployState]map[deployEvent]deployState{
	stateServing: {
		eventSwap: stateStarting, eventDisable: stateDisabling, eventClose: stateClosed,
	},
	stateProbation: {
		eventSwap: stateStarting, eventSettle: stateServing, eventDisable: stateDisabling, eventClose: stateClosed,
	},
	stateStarting: {
		eventTry: stateCanary, eventPass: statePromoting, eventReject: stateBefore, eventDisable: stateDisabling,
	},
	stateCanary: {
		eventPass: statePromoting, eventReject: stateBefore, eventDisable: stateDisabling,
	},
	statePromoting: {
		eventPromote: stateProbation, eventReplace: stateServing, eventRestart: stateBefore,
		eventReject: stateBefore, eventDisable: stateDisabling,
	},
	stateDisabling: {
		eventReject: stateDisabling, eventDisable: stateDisabling, eventRetire: stateDisabled, eventClose: stateClosed,
	},
	stateDisabled: {
		eventEnable: stateServing, eventEnableOnProbation: stateProbation, eventDisable: stateDisabled, eventClose: stateClosed,
	},
	stateClosed: {},
}

// deploy is the state of a plugin, and the state to return to when a swap fails.
type deploy struct {
	state  deployState
	before deployState
}

func newDeploy() deploy { return deploy{state: stateServing, before: stateServing} }

// illegalEvent is the error for an event that the state does not allow.
type illegalEvent struct {
	state deployState
	event deployEvent
}

func (e illegalEvent) Error() string {
	return fmt.Sprintf("a plugin in the state %q does not allow the event %q", e.state, e.event)
}

// fire moves on to the state that follows from the event. It changes nothing and
// returns an illegalEvent if there is none.
func (d *deploy) fire(event deployEvent) error {
	next, legal := deployTable[d.state][event]
	switch {
	case !legal:
		return illegalEvent{d.state, event}
	case next == stateBefore:
		next = d.before
	case event == eventSwap:
		d.before = d.state
	}
	d.state = next
	return nil
}

// serves reports whether a version serves.
func (d *deploy) serves() bool { return d.state != stateDisabled && d.state != stateClosed }

// isDisabled reports whether an operator has disabled the plugin.
func (d *deploy) isDisabled() bool { return d.state == stateDisabling || d.state == stateDisabled }
