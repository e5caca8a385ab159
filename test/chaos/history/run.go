package history

import (
	"slices"
	"time"
)

// Nanos is a moment: nanoseconds since 1970.
type Nanos int64

// Time is n as a time, in UTC.
func (n Nanos) Time() time.Time { return time.Unix(0, int64(n)).UTC() }

// Run is what was set before the run began. Every duration is in nanoseconds.
type Run struct {
	Seed     uint64        `json:"seed"`
	Started  Nanos         `json:"started"`
	Ended    Nanos         `json:"ended"`
	Duration time.Duration `json:"duration"`
	// Commit names the version of the runner and the product; empty if nobody said.
	Commit string `json:"commit,omitempty"`

	// Lease is how long a lease lasts, ReapInterval how often a reaper looks. Grace is
	// how long nothing had to move, after everything had healed, until the run gave up on
	// the jobs that were open.
	Lease        time.Duration `json:"lease"`
	ReapInterval time.Duration `json:"reapInterval"`
	Grace        time.Duration `json:"grace"`
	// MaxAttempts are those of each job type, unless a submission had its own.
	MaxAttempts map[string]int `json:"maxAttempts"`
	// MaxCrashes is how many processes may die under a job of any type until it is dead.
	MaxCrashes int `json:"maxCrashes"`
	// Retries are the shortest delays before a retry of each job type, and Timeouts how long
	// each attempt may take. Types that are absent are not checked.
	Retries  map[string]Backoff       `json:"retries,omitempty"`
	Timeouts map[string]time.Duration `json:"timeouts,omitempty"`
	// Recorded are the job types whose handlers write effects.
	Recorded []string `json:"recorded"`
	// Obedient are those of them whose handlers stop when they are asked to.
	Obedient []string `json:"obedient,omitempty"`
	// Unsubmitted are the job types whose jobs no call has submitted: those of schedules
	// and handlers.
	Unsubmitted []string `json:"unsubmitted,omitempty"`

	// Synchronous says that commits wait for the standby. If not, acknowledged jobs can
	// be lost in a failover, and fences be issued twice, as it is documented.
	Synchronous bool `json:"synchronous"`
	Pooler      bool `json:"pooler"`

	Minimums Minimums `json:"minimums"`
	Bounds   Bounds   `json:"bounds"`
}

// Backoff is the shortest delay before each retry, as chance makes it.
type Backoff struct {
	// First is that before the first retry. It grows by Factor with each further attempt that
	// counts, up to Most.
	First  time.Duration `json:"first"`
	Factor float64       `json:"factor"`
	Most   time.Duration `json:"most"`
	// Spread is how many times as long chance may make each; 0 if nobody judges that.
	Spread float64 `json:"spread,omitempty"`
}

// Minimums are how much a run must do. One that did less proves nothing, and fails.
type Minimums struct {
	Jobs int `json:"jobs"`
	// Faults counts those that were injected, Kinds the kinds of these.
	Faults int `json:"faults"`
	Kinds  int `json:"kinds"`
	// StaleAttempts are attempts that lost their lease while they ran, and reported
	// all the same.
	StaleAttempts int `json:"staleAttempts"`
	Failovers     int `json:"failovers"`
	// Unknown are calls whose answer was lost.
	Unknown int `json:"unknown"`
	// Reads are answers of Get that can be compared with what the witness saw.
	Reads int `json:"reads"`
	// Orchestrators and Databases count names, Plugins processes.
	Orchestrators int `json:"orchestrators"`
	Plugins       int `json:"plugins"`
	Databases     int `json:"databases"`
}

// Bounds are the longest times to recover. Zero means that there is no bound.
type Bounds struct {
	// ReclaimSameHost is from the death of a process until its job is claimable, if a
	// reaper on its host can see it; ReclaimElsewhere is the same for everything else.
	// They are 99th percentiles.
	ReclaimSameHost  time.Duration `json:"reclaimSameHost,omitempty"`
	ReclaimElsewhere time.Duration `json:"reclaimElsewhere,omitempty"`
	// FirstAccept and FirstClaim are from the moment that a new primary answers. They hold
	// for failovers that no other fault has disturbed.
	FirstAccept time.Duration `json:"firstAccept,omitempty"`
	FirstClaim  time.Duration `json:"firstClaim,omitempty"`
	// Drained is from the moment that everything has healed until no job is open.
	Drained time.Duration `json:"drained,omitempty"`
	// Overlap is how long a handler may go on after the next attempt at its job began, on a
	// machine that never stalls.
	Overlap time.Duration `json:"overlap,omitempty"`
	// Growth is how much more than at the baseline each process may use.
	Growth Usage `json:"growth"`
}

// Percentile99 is the 99th percentile by the nearest rank: the least of the durations that
// 99 % of them do not exceed; 0 if there are none. It sorts them.
func Percentile99(durations []time.Duration) time.Duration {
	if len(durations) == 0 {
		return 0
	}
	slices.Sort(durations)
	return durations[(len(durations)*99+99)/100-1]
}
