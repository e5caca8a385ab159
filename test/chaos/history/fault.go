package history

import "time"

// Fault is one fault that the runner injected, or tried to.
type Fault struct {
	// Kind is a short name, such as kill-orchestrator; Target is what it hit.
	Kind       string            `json:"kind"`
	Target     string            `json:"target"`
	Parameters map[string]string `json:"parameters,omitempty"`
	Injected   Nanos             `json:"injected"`
	// Standing is when the runner had injected the fault, and Healing when it began to heal
	// it: in between, what operators have asked for holds. 0 if it could not be injected.
	Standing Nanos `json:"standing,omitempty"`
	Healing  Nanos `json:"healing,omitempty"`
	// Healed is when the fault was over; for a kill, when the process was replaced.
	Healed Nanos `json:"healed"`
	// Error is why it could not be injected. Such a fault does not count.
	Error string `json:"error,omitempty"`
	// Failover says that another server was the primary afterwards.
	Failover bool `json:"failover,omitempty"`
	// Crash says that a database server ended without writing what it had in memory.
	Crash bool `json:"crash,omitempty"`
	// Pause says that processes stood still: what ran in them may go on for a moment
	// afterwards.
	Pause bool `json:"pause,omitempty"`
	// PluginOnly says that it was done to plugins only: no orchestrator may end for it.
	PluginOnly bool `json:"pluginOnly,omitempty"`
}

// The parameters of faults that the checker reads.
const (
	// Unanswered is there if a call was not answered with success. It may be carried out at any
	// later time, even after the fault was healed.
	Unanswered = "unanswered"
	// Concurrency is how many jobs a limit lets run at once.
	Concurrency = "concurrency"
	// Every is the time between two ticks of a schedule each of which makes a job.
	Every = "every"
)

// Process is one process that the run started, or that one of these has started.
type Process struct {
	Kind ProcessKind `json:"kind"`
	// Name is that of the orchestrator, the plugin or the server; Host is the imagined
	// host that it belongs to.
	Name string `json:"name"`
	Host string `json:"host,omitempty"`
	PID  int    `json:"pid"`
	// PIDStarted is the start in clock ticks since boot, as in /proc/PID/stat. It
	// distinguishes the process from a later one with the same PID.
	PIDStarted uint64 `json:"pidStarted"`
	Started    Nanos  `json:"started"`
	// Ended is 0 for a process that was still there after the runner had ended everything.
	Ended Nanos `json:"ended,omitempty"`
	// Exit is the exit code, or -1 if Signal has ended it, or nobody knows.
	Exit   int    `json:"exit,omitempty"`
	Signal string `json:"signal,omitempty"`
	// Wanted says that the runner ended the process, or what it depends on.
	Wanted bool `json:"wanted,omitempty"`
}

// ProcessKind says what a process is.
type ProcessKind string

// The kinds of processes.
const (
	Orchestrator ProcessKind = "orchestrator"
	Plugin       ProcessKind = "plugin"
	Database     ProcessKind = "database"
	Other        ProcessKind = "other"
)

// Leaks compares what there was before the load with what there is after everything
// has healed.
type Leaks struct {
	Baseline []Usage `json:"baseline"`
	Healed   []Usage `json:"healed"`
	// Orphans are processes of the run that still live although what started them is
	// gone: their names and pids.
	Orphans []string `json:"orphans,omitempty"`
	// Sockets are files and directories of plugins' sockets without a process.
	Sockets []string `json:"sockets,omitempty"`
	// Doctor is what `orchestrator doctor` found; DoctorExit its exit code.
	Doctor     []string `json:"doctor,omitempty"`
	DoctorExit int      `json:"doctorExit"`
}

// Usage is what one process uses, or the database for all of its clients.
type Usage struct {
	// Name is that of the process, the same at baseline and afterwards.
	Name        string `json:"name"`
	Descendants int    `json:"descendants"`
	Files       int    `json:"files"`
	Goroutines  int    `json:"goroutines"`
	// Connections are those in the pools of an orchestrator, and the one that listens. For the
	// database they are the sessions of all orchestrators; with a pooler, those that the pooler has.
	Connections int `json:"connections"`
}

// DatabaseUsage is the name of what the database uses.
const DatabaseUsage = "database"

// Timings are how long it took to recover.
type Timings struct {
	Reclaims  []Reclaim  `json:"reclaims"`
	Failovers []Failover `json:"failovers"`
	// Drained is how long it took after everything had healed until nothing was left to
	// do; -1 if the run gave up.
	Drained time.Duration `json:"drained"`
	Lag     Lag           `json:"lag"`
}

// Lag is how late the machine let a ticker of the runner fire: how busy it was. The ticker
// fires every 10 milliseconds.
type Lag struct {
	// P99 is the 99th percentile, and Most the most.
	P99  time.Duration `json:"p99"`
	Most time.Duration `json:"most"`
	// Stalls are when it was late by more than 50 milliseconds.
	Stalls []Stall `json:"stalls,omitempty"`
}

// Stall is a time in which the machine did not run what was to run.
type Stall struct {
	From Nanos `json:"from"`
	To   Nanos `json:"to"`
}

// Reclaim is one job whose worker was lost.
type Reclaim struct {
	// Case names how it was lost, such as kill-orchestrator.
	Case string `json:"case"`
	// SameHost says that a reaper ran on the host of the lost worker.
	SameHost bool   `json:"sameHost"`
	JobID    string `json:"jobId"`
	// Lost is when the worker was lost, Reclaimed when the job was taken from it.
	Lost      Nanos `json:"lost"`
	Reclaimed Nanos `json:"reclaimed"`
}

// Failover is one change of the primary.
type Failover struct {
	Kind string `json:"kind"`
	// Answers is when the new primary accepted writes. FirstAccept is when the first submission after
	// that was acknowledged, FirstClaim when the first job was claimed; 0 for never.
	Answers     Nanos `json:"answers"`
	FirstAccept Nanos `json:"firstAccept,omitempty"`
	FirstClaim  Nanos `json:"firstClaim,omitempty"`
	// AcceptDisturbed and ClaimDisturbed name the kinds of other faults that were there
	// meanwhile, and could hold up the one or the other: how long it took then says nothing
	// about the failover.
	AcceptDisturbed []string `json:"acceptDisturbed,omitempty"`
	ClaimDisturbed  []string `json:"claimDisturbed,omitempty"`
}
