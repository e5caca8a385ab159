package client

import (
	"encoding/json"
	"time"
)

// Job is a job as clients see it.
type Job struct {
	JobID      string          `json:"jobId"`
	JobType    string          `json:"jobType"`
	Status     string          `json:"status"`
	CreatedAt  time.Time       `json:"createdAt"`
	UpdatedAt  time.Time       `json:"updatedAt"`
	StartedAt  *time.Time      `json:"startedAt"`
	FinishedAt *time.Time      `json:"finishedAt"`
	Progress   json.RawMessage `json:"progress"`
	Result     json.RawMessage `json:"result"`
}

// The public statuses.
const (
	Pending   = "PENDING"
	Running   = "RUNNING"
	Completed = "COMPLETED"
	Failed    = "FAILED"
	Canceled  = "CANCELED"
)

// Statuses lists the public statuses.
func Statuses() []string { return []string{Pending, Running, Completed, Failed, Canceled} }

// Ended reports whether the status is final.
func (j Job) Ended() bool {
	return j.Status == Completed || j.Status == Failed || j.Status == Canceled
}

// Detail is everything about a job, as operators see it.
type Detail struct {
	Job
	State           string          `json:"state"`
	Tenant          string          `json:"tenant"`
	Payload         json.RawMessage `json:"payload"`
	Checkpoint      json.RawMessage `json:"checkpoint"`
	IdempotencyKey  string          `json:"idempotencyKey"`
	Tags            []string        `json:"tags"`
	Priority        int             `json:"priority"`
	RunAt           *time.Time      `json:"runAt"`
	Held            bool            `json:"held"`
	AttemptsCharged int             `json:"attemptsCharged"`
	MaxAttempts     int             `json:"maxAttempts"`
	Interruptions   int             `json:"interruptions"`
	Crashes         int             `json:"crashes"`
	Fence           int64           `json:"fence"`
	TimeoutSeconds  float64         `json:"timeoutSeconds"`
	LastError       string          `json:"lastError"`
	Worker          string          `json:"worker"`
	TraceID         string          `json:"traceId"`
	TraceURL        string          `json:"traceUrl"`
	Lease           *Lease          `json:"lease"`
	Attempts        []Attempt       `json:"attempts"`
}

// Lease is how a running job is owned.
type Lease struct {
	Worker          string    `json:"worker"`
	ClaimedAt       time.Time `json:"claimedAt"`
	ExpiresAt       time.Time `json:"expiresAt"`
	CancelRequested bool      `json:"cancelRequested"`
}

// Attempt is one finished run of a handler.
type Attempt struct {
	Number          int       `json:"number"`
	Outcome         string    `json:"outcome"`
	Worker          string    `json:"worker"`
	Plugin          string    `json:"plugin"`
	PluginVersion   string    `json:"pluginVersion"`
	ClaimedAt       time.Time `json:"claimedAt"`
	EndedAt         time.Time `json:"endedAt"`
	DurationSeconds float64   `json:"durationSeconds"`
	Code            string    `json:"code"`
	Error           string    `json:"error"`
	Stack           string    `json:"stack"`
}

// JobLogs is what a job's handler has logged.
type JobLogs struct {
	Attempts []AttemptLog `json:"attempts"`
}

// AttemptLog is the end of what one attempt has logged.
type AttemptLog struct {
	Number  int       `json:"number"`
	Fence   int64     `json:"fence"`
	Dropped int64     `json:"dropped"`
	Lines   []LogLine `json:"lines"`
}

// LogLine is one record of a handler.
type LogLine struct {
	Time       time.Time       `json:"time"`
	Level      string          `json:"level"`
	Message    string          `json:"message"`
	Attributes json.RawMessage `json:"attributes"`
	Truncated  bool            `json:"truncated"`
}

// DeadLetter is a job that failed for good.
type DeadLetter struct {
	JobID     string    `json:"jobId"`
	JobType   string    `json:"jobType"`
	Tenant    string    `json:"tenant"`
	DeadAt    time.Time `json:"deadAt"`
	Attempts  int       `json:"attempts"`
	LastError string    `json:"lastError"`
}

// JobType is what is known of a job type.
type JobType struct {
	JobType        string  `json:"jobType"`
	Plugin         string  `json:"plugin"`
	Version        string  `json:"version"`
	Description    string  `json:"description"`
	MaxAttempts    int     `json:"maxAttempts"`
	TimeoutSeconds float64 `json:"timeoutSeconds"`
	Concurrency    int     `json:"concurrency"`
	HasSchema      bool    `json:"hasSchema"`
	Retry          Retry   `json:"retry"`
}

// JobTypeList is all job types.
type JobTypeList struct {
	JobTypes []JobType `json:"jobTypes"`
}

// Retry is how failed attempts are followed by others.
type Retry struct {
	Backoff            string  `json:"backoff"`
	BaseSeconds        float64 `json:"baseSeconds"`
	Factor             float64 `json:"factor"`
	CapSeconds         float64 `json:"capSeconds"`
	JitterMin          float64 `json:"jitterMin"`
	JitterMax          float64 `json:"jitterMax"`
	AtOnceAfterTimeout bool    `json:"atOnceAfterTimeout"`
}

// Worker is one incarnation of an orchestrator.
type Worker struct {
	WorkerID      string           `json:"workerId"`
	PID           int              `json:"pid"`
	Condition     string           `json:"condition"`
	StartedAt     time.Time        `json:"startedAt"`
	LastHeartbeat time.Time        `json:"lastHeartbeat"`
	StoppedAt     *time.Time       `json:"stoppedAt"`
	Jobs          map[string]int64 `json:"jobs"`
}

// WorkerList is all workers.
type WorkerList struct {
	Workers []Worker `json:"workers"`
}

// Queue is what waits and runs of one job type.
type Queue struct {
	JobType             string  `json:"jobType"`
	Queued              int64   `json:"queued"`
	OldestQueuedSeconds float64 `json:"oldestQueuedSeconds"`
	Scheduled           int64   `json:"scheduled"`
	Held                int64   `json:"held"`
	Retrying            int64   `json:"retrying"`
	Running             int64   `json:"running"`
	Dead                int64   `json:"dead"`
	Served              bool    `json:"served"`
}

// QueueList is what waits and runs of every job type, and the types that no
// live worker has a handler for.
type QueueList struct {
	Queues   []Queue  `json:"queues"`
	Unserved []string `json:"unserved"`
}

// Metrics is how the whole system stands. Counts are by state, or by what is
// counted.
type Metrics struct {
	StatusCounts   map[string]int64   `json:"statusCounts"`
	Recent         map[string]int64   `json:"recent"`
	LastMinute     int64              `json:"processedLastMinute"`
	FailuresByType map[string]int64   `json:"failuresByJobType"`
	AverageSeconds map[string]float64 `json:"avgDurationSecondsByJobType"`
}

// Diagnosis is what a doctor found.
type Diagnosis struct {
	Severity string  `json:"severity"`
	Checks   []Check `json:"checks"`
}

// The severities of a diagnosis that are not ok.
const (
	Warning = "warning"
	Trouble = "problem"
)

// Check is one thing that was looked at.
type Check struct {
	Name     string   `json:"name"`
	Severity string   `json:"severity"`
	Summary  string   `json:"summary"`
	Details  []string `json:"details"`
	Remedy   string   `json:"remedy"`
}
