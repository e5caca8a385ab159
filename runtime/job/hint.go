package job

// Hint names a channel on which processes announce that something changed. Hints may be lost,
// and only save time: polling finds everything too.
type Hint string

// Notice is a hint with the job types that it is about. Nil says nothing about them: it may be
// about any.
type Notice struct {
	Hint  Hint
	Types []string
	// From names the process that says so, if it has nothing to say to itself; it may be empty.
	From string
}

const (
	// JobsReady: jobs were put on the ready list.
	JobsReady Hint = "holdfast_ready"
	// CancelAsked: the cancel of a running job was requested.
	CancelAsked Hint = "holdfast_cancel"
	// JobsAwaited: clients of some process wait for jobs to end.
	JobsAwaited Hint = "holdfast_awaited"
	// JobsEnded: jobs have reached a final state. It is only sent while clients of another process wait.
	JobsEnded Hint = "holdfast_ended"
	// TypesDeclared: a worker has declared job types.
	TypesDeclared Hint = "holdfast_types"
	// RulesChanged: a limit or a pause was set, changed or ended.
	RulesChanged Hint = "holdfast_rules"
	// GatesChanged: a gate has lost a slot, or a lane has got a job.
	GatesChanged Hint = "holdfast_gates"
	// FollowedEnded: a followed job has ended.
	FollowedEnded Hint = "holdfast_followed"
	// EventsRecorded: ends were recorded as events.
	EventsRecorded Hint = "holdfast_events"
	// PluginsCommanded: something is asked of plugins.
	PluginsCommanded Hint = "holdfast_plugins"
	// TimersSet: a job will become due before processes that maintain would look.
	TimersSet Hint = "holdfast_timers"
	// MaintenanceAsked: there is something to do for processes that maintain: a schedule was
	// set, an operation or an erasure was asked for, or a job expires before they would look.
	MaintenanceAsked Hint = "holdfast_maintenance"
)

// Hints lists every hint.
func Hints() []Hint {
	return []Hint{
		JobsReady, CancelAsked, JobsAwaited, JobsEnded, TypesDeclared, RulesChanged, GatesChanged, FollowedEnded, EventsRecorded, PluginsCommanded,
		TimersSet, MaintenanceAsked,
	}
}
