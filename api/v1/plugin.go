package v1

import (
	"time"

	"github.com/holdfast-jobs/holdfast/runtime/job"
)

// Plugin is a plugin of the orchestrator that you ask.
type Plugin struct {
	PluginVersion
	Name            string           `json:"name"`
	Path            string           `json:"path" doc:"The configured path of the binary."`
	State           job.PluginState  `json:"state" enum:"starting,up,broken,disabled" doc:"A broken plugin keeps failing and is launched only now and then."`
	JobTypes        []string         `json:"jobTypes" nullable:"false" doc:"The job types that it serves, or served last."`
	SkippedJobTypes []string         `json:"skippedJobTypes,omitempty" nullable:"false" doc:"The job types that it declares but does not serve, because the configuration gives them to another plugin or does not list them for this one."`
	PIDs            []int            `json:"pids" nullable:"false" doc:"The processes that serve."`
	Processes       int              `json:"processes" doc:"How many processes there should be."`
	Running         int              `json:"running" doc:"Attempts in the processes that serve."`
	Free            int              `json:"free" doc:"Free slots in these processes."`
	Isolated        int              `json:"isolated" doc:"Attempts that have a process of their own, or wait for one."`
	Draining        int              `json:"draining" doc:"Attempts that still run in replaced versions."`
	Restarts        int              `json:"restarts" doc:"Failed launches and ended processes since the orchestrator started."`
	Crashes         int              `json:"crashes" doc:"How many of those processes crashed."`
	LastError       string           `json:"lastError,omitempty"`
	SkipReason      string           `json:"skipReason,omitempty" doc:"Why the file at path does not serve and is not tried: it is not a file, or it was rolled back or refused before the plugin was enabled."`
	Limits          []Enforcement    `json:"limits" nullable:"false" doc:"How each configured limit is enforced on this machine."`
	Use             []PluginUse      `json:"use,omitempty" nullable:"false" doc:"What the processes that serve use, as measured in the last few seconds. One that was not measured is missing."`
	Breaker         *PluginBreaker   `json:"breaker,omitempty" doc:"Absent while no process has failed."`
	Candidate       *PluginCandidate `json:"candidate,omitempty" doc:"The next version, while there is one."`
	LastSwap        *PluginSwap      `json:"lastSwap,omitempty" doc:"The latest replacement of a version, ended or not. Absent before the first."`
}

// Enforcement says how one limit of a plugin is enforced.
type Enforcement struct {
	Limit string  `json:"limit" doc:"The limit's key in the configuration."`
	Value float64 `json:"value" doc:"The limit of each process: bytes of memory, processors, open files, or processes and threads."`
	By    string  `json:"by" doc:"The means, such as cgroup or rlimit."`
	Gap   string  `json:"gap,omitempty" doc:"What the limit does not cover."`
}

// PluginUse is what a process of a plugin uses, with all that it has forked. Its fields are
// named as the limits are.
type PluginUse struct {
	PID       int     `json:"pid"`
	Memory    int64   `json:"memory" doc:"Bytes, to the next MiB."`
	CPUs      float64 `json:"cpus" doc:"How many processors it has kept busy, on average since it was measured before."`
	Processes int64   `json:"processes" doc:"Processes and threads."`
}

// PluginBreaker delays the launches of a plugin that fails.
type PluginBreaker struct {
	Failures     int        `json:"failures" doc:"Launches that failed and processes that died, in a row."`
	Open         bool       `json:"open" doc:"Whether there were so many that the plugin counts as broken while no process is up."`
	NextLaunchAt *time.Time `json:"nextLaunchAt,omitempty" doc:"Before this time there is no launch. Absent if one may begin now."`
}

// PluginVersion identifies a version of a plugin.
type PluginVersion struct {
	Version string `json:"version" doc:"From its manifest. Empty until it has been up once."`
	SHA256  string `json:"sha256" doc:"Digest of the binary."`
}

// PluginCandidate is a version that runs beside the serving one.
type PluginCandidate struct {
	PluginVersion
	State   job.CandidateState `json:"state" enum:"starting,canary"`
	PIDs    []int              `json:"pids" nullable:"false"`
	Running int                `json:"running" doc:"Attempts that it runs now."`
	PluginTrial
}

// PluginTrial compares a canary with the version that serves at the same time.
type PluginTrial struct {
	Ended         int         `json:"ended" doc:"Attempts of the canary that ended."`
	Failed        int         `json:"failed" doc:"How many of them failed. They were not charged."`
	ServingEnded  int         `json:"servingEnded" doc:"Attempts of the serving version that ended in the same time, or before it if none did."`
	ServingFailed int         `json:"servingFailed" doc:"How many of them failed."`
	Slowest       *PluginPace `json:"slowest,omitempty" doc:"The job type at which the canary compares worst. Absent if there is nothing to compare."`
}

// PluginPace compares how long the latest successful attempts of a job type took.
type PluginPace struct {
	JobType              string  `json:"jobType"`
	MedianSeconds        float64 `json:"medianSeconds" doc:"Of the canary."`
	ServingMedianSeconds float64 `json:"servingMedianSeconds" doc:"Of the serving version."`
}

// PluginSwap is one replacement of the serving version.
type PluginSwap struct {
	Trigger job.SwapTrigger `json:"trigger" enum:"file,config,request,restart,failure" doc:"What started it. failure: the promoted version kept failing, and the version before it took over again."`
	From    PluginVersion   `json:"from"`
	To      PluginVersion   `json:"to"`
	BegunAt time.Time       `json:"begunAt"`
	EndedAt *time.Time      `json:"endedAt,omitempty" doc:"Absent until it ends."`
	Result  job.SwapResult  `json:"result,omitempty" enum:"promoted,rolled_back,refused,abandoned" doc:"Absent until it ends. Unless it is promoted, the old version keeps serving."`
	Trial   *PluginTrial    `json:"trial,omitempty" doc:"How the new version did as a canary. Absent if it was no canary, or none of its attempts has ended."`
	Reason  string          `json:"reason,omitempty" doc:"Why the new version does not serve. If the trigger is failure: why the other one stopped serving."`
}

// PluginList is all plugins of one orchestrator.
type PluginList struct {
	Plugins []Plugin `json:"plugins" nullable:"false" doc:"In the order of the configuration."`
}
