package main

import "strings"

// Guarantee says what a system promises in a mode.
type Guarantee struct {
	// Mode is empty if the system has the same mode in all scenarios.
	Mode string `json:"mode,omitempty"`
	// History is what remains of a job that has succeeded.
	History string `json:"history"`
	// Lease is how the system notices that a worker has died.
	Lease string `json:"lease"`
	// Fence is what an attempt must still own to end a job.
	Fence string `json:"fence"`
	// Process is where handlers run.
	Process string `json:"process"`
}

const (
	plainMode   = "plain"
	nearestMode = "nearest"
)

var holdfastGuarantees = []Guarantee{{
	History: "job and attempt", Lease: "30 s, renewed", Fence: "the lease of this attempt", Process: "a process of their own",
}}

var riverGuarantees = []Guarantee{{
	History: "job, for 24 hours by default", Lease: "none: 1 hour after the start (`RescueStuckJobsAfter`)",
	Fence: "none: the job must be `running`", Process: "the worker's process",
}}

var graphileGuarantees = []Guarantee{
	{
		Mode: plainMode, History: "none", Lease: "none: 4 hours after the start",
		Fence: "none: deleted by id", Process: "the worker's process",
	},
	{
		Mode: nearestMode, History: "a row of our own, by a trigger, in the transaction that deletes the job", Lease: "as plain",
		Fence: "as plain", Process: "as plain",
	},
}

var pgBossGuarantees = []Guarantee{
	{
		Mode: plainMode, History: "job, for 7 days by default", Lease: "none: 15 minutes after the start (`expireInSeconds`)",
		Fence: "none: the job must be `active`", Process: "the worker's process",
	},
	{
		Mode: nearestMode, History: "as plain", Lease: "30 s, renewed (`heartbeatSeconds`)",
		Fence: "the attempt that was fetched", Process: "as plain",
	},
}

// guarantees renders what each system promises.
func (r *Results) guarantees(say func(format string, args ...any)) {
	say("\nWhat each system promises, in the plain scenarios and where it is nearest to Holdfast:\n")
	say("| system | after success it keeps | lease of a running job | what the end of a job checks | handlers run in |\n|---|---|---|---|---|")
	for _, system := range r.Systems {
		for _, g := range system.Guarantees {
			title := system.Name
			if g.Mode != "" {
				title += ", " + g.Mode
			}
			say("| %s |", strings.Join([]string{title, g.History, g.Lease, g.Fence, g.Process}, " | "))
		}
	}
	say("\nNo peer can run handlers in processes of their own, where a crash does not end the worker.")
	say("Holdfast pays for that in every row of this page, and the peers do not.")
}
