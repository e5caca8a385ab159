package transfer

// moved are the tables that a file has, in its order. The ledger comes first: triggers of
// lists look jobs up in it.
var moved = []string{
	"jobs",
	"ready", "timers", "dead_letters", "parked", "expiries", "unique_keys",
	"unsuccessful_attempts", "attempt_logs",
	"wakes", "slots", "admitted", "turns", "limits", "pauses",
	"workflows", "workflow_jobs", "workflow_edges",
	"schedules",
	"ends", "undelivered", "events", "last_event",
	"tallies", "tally_totals", "tally_slots", "tally_attempts", "latency_slots",
	"job_types", "type_owners", "plugin_events",
	"operations", "retention", "erasures", "audit_log",
}

// leftOut are all other tables of the schema, and why a file does not have them.
var leftOut = map[string]string{
	"goose_db_version": "each database has its own migrations",
	"cell":             "the first line of the file has it",
	"leases":           "nothing runs while a ledger is exported: it must be empty",
	"workers":          "they have stopped, and their ids are never used again",
	"tally_workers":    "figures of workers, which are forgotten with them",
	"plugin_status":    "the plugins of workers that have stopped",
	"plugin_commands":  "what workers that have stopped were asked",
	"plugin_outcomes":  "what workers that have stopped answered",
	"ui_sessions":      "people log in again",
	"ui_links":         "they live for minutes",
}
