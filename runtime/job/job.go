package job

import (
	"encoding/json"
	"errors"
	"strings"
	"time"
)

// The errors that cross package borders, wrapped with the operation only. The store
// translates SQLSTATEs into them, and the API translates them into problem answers.
var (
	// ErrNotFound says that no such job exists.
	ErrNotFound = errors.New("job not found")
	// ErrLeaseLost says that the caller no longer holds the lease: it expired and was taken
	// over, or the attempt was already settled. Nothing was written.
	ErrLeaseLost = errors.New("lease lost")
	// ErrKeyReused says that an idempotency key was used before for another
	// job type or payload. Nothing was written.
	ErrKeyReused = errors.New("idempotency key was used for a different job type or payload")
	// ErrWrongState says that the job's state does not allow the operation,
	// such as a requeue of a job that is not dead. Nothing was written.
	ErrWrongState = errors.New("the job's state does not allow this")
	// ErrUnknownType says that no handler has ever declared the job type.
	ErrUnknownType = errors.New("unknown job type")
	// ErrBadData says that the database cannot store a value that was sent,
	// such as text that is not UTF-8. Sending it again will not help.
	ErrBadData = errors.New("value cannot be stored")
	// ErrUnavailable says that the database could not be reached or refused
	// the work for now. Sending it again later may help.
	ErrUnavailable = errors.New("database unavailable")
	// ErrBusy says that there are too many reads for another one, or that it
	// took too long. Asking again later, or for less, may help.
	ErrBusy = errors.New("too many reads")
	// ErrNoLimit says that there is no limit of the scope and name.
	ErrNoLimit = errors.New("no such limit")
	// ErrNoPause says that there is no pause of the scope and name.
	ErrNoPause = errors.New("no such pause")
	// ErrNoWorker says that there is no such worker, that it has stopped, or that its process
	// runs no jobs.
	ErrNoWorker = errors.New("no such worker, or it has stopped or runs no jobs")
	// ErrNoType is returned for a job type that no handler has declared and no job has had.
	ErrNoType = errors.New("no such job type: no handler has declared it, and no job has had it")
	// ErrConfigured says that the configuration has set a limit, so nothing else can
	// change it.
	ErrConfigured = errors.New("the limit is set by the configuration")
	// ErrOutcomeUnknown says that a write may or may not have been done: it was not
	// answered, or was committed on the primary alone, where a failover can undo it. Sending
	// it again is safe.
	ErrOutcomeUnknown = errors.New("outcome unknown")
)

// DefaultTenant owns every job that is submitted without a tenant.
const DefaultTenant = "default"

// Submission is a client's request for a job, with every default resolved.
type Submission struct {
	// ID is the new job's id. The same id sent twice makes one job, which is
	// how a submission whose commit was not acknowledged is sent again.
	ID     ID
	Type   string
	Tenant string
	// Payload is JSON, kept to the letter.
	Payload json.RawMessage
	// IdempotencyKey is unique within the tenant; empty for none.
	IdempotencyKey string
	// Asked is the JSON that requests with the same key must have in common, apart from the
	// type; nil for the payload.
	Asked json.RawMessage
	// Priority is higher for more urgent jobs; the default is 0.
	Priority int16
	// RunAt is the instant the job becomes due; the zero time for at once,
	// or for Delay after the database receives it. At most one of the two is
	// set.
	RunAt time.Time
	Delay time.Duration
	// Hold keeps the job in Created until it is released.
	Hold bool
	// Fast submissions are answered before the job is on disk: a crash of the database
	// within the next second can lose it.
	Fast bool
	// MaxAttempts is how often a handler may be started; at least 1.
	MaxAttempts int
	// Timeout bounds each attempt.
	Timeout time.Duration
	Tags    []string
	// Trace is the context of the request, or of the span within which it was
	// submitted.
	Trace Trace
	// Terms say how the job shares with others, and Gates what it must pass for that
	// before it is ready, now; see Rules.Gates.
	Terms Terms
	Gates []Gate
	// ExpiresAt is when the job is canceled unless it has started; the zero time for
	// never, or for TTL after the database receives it. At most one of the two is set.
	ExpiresAt time.Time
	TTL       time.Duration
	// Unique keeps out other jobs like this one; nil for none.
	Unique *Unique
	// Parent is the job that submitted this one; the zero id for none.
	Parent ID
	// ResubmissionOf is the job that somebody submits anew; the zero id for none.
	ResubmissionOf ID
	// Followed says that the follower must be told when the job is succeeded, dead or
	// canceled, because others wait for that.
	Followed bool
	// CallbackURL is told when the job is succeeded, dead or canceled; empty for nobody.
	// Such a job is Followed.
	CallbackURL string
}

// Receipt is the answer to a submission, whether it created the job or found one.
type Receipt struct {
	ID        ID
	Type      string
	State     State
	CreatedAt time.Time
	UpdatedAt time.Time
	// Replayed says that an earlier submission with the same key created the job. The API
	// does not show it.
	Replayed bool
	// Duplicate says that no job was created: the receipt is of the job that kept it out,
	// because both must be unique.
	Duplicate bool
}

// Submitted is what became of one submission of a batch: its receipt, or one
// of ErrKeyReused, ErrBadData, ErrUnavailable.
type Submitted struct {
	Receipt Receipt
	Err     error
}

// Trace is the W3C trace context that a job carries from its submission to
// every attempt; empty strings for none.
type Trace struct {
	Parent string // traceparent header
	State  string // tracestate header
	// Baggage is the client's baggage header, for the handler to read and to
	// pass on.
	Baggage string
}

// ID is the id of the trace, 32 hexadecimal digits; empty for none.
func (t Trace) ID() string {
	_, rest, _ := strings.Cut(t.Parent, "-")
	id, _, found := strings.Cut(rest, "-")
	if !found || len(id) != 32 || strings.Trim(id, "0123456789abcdef") != "" {
		return ""
	}
	return id
}

// View is the public view of a job, without its payload, attempts, worker and lease. Nil
// pointers and empty messages are absent.
type View struct {
	ID         ID
	Type       string
	Tenant     string
	State      State
	CreatedAt  time.Time
	UpdatedAt  time.Time
	StartedAt  *time.Time
	FinishedAt *time.Time
	Progress   json.RawMessage
	Result     json.RawMessage
	// ErasedAt is when the job was blanked: then nothing is left but the record that there was
	// such a job. Nil for never.
	ErasedAt *time.Time
	// Trace is the context that the job carries.
	Trace Trace
}

// Cancellation is the result of a cancel, with the job as it is afterwards.
type Cancellation struct {
	View
	// Canceled says that the job was waiting and that this very cancel ended it.
	Canceled bool
	// Requested says that the job was running, and that this cancel asked its worker to
	// stop it.
	Requested bool
	// Freed says that slots of the job's gates became free.
	Freed bool
	// Followed says that the follower must look at the end of the job.
	Followed bool
}

// Requeued is a dead job that was started anew.
type Requeued struct {
	ID     ID
	Type   string
	Tenant string
	// Trace is the context that the job carries.
	Trace Trace
}

// Attempt is a finished run of a handler, as kept in the database.
type Attempt struct {
	Fence         int64
	Number        int
	WorkerID      string
	Plugin        string
	PluginVersion string
	// DueAt is when the job was due: for a job that was released, that may be before the end of
	// the attempt before. BeganAt is when the handler was started, and DoneAt as in Settlement;
	// it is nil for a success. Each is nil if it is not known.
	DueAt     *time.Time
	ClaimedAt time.Time
	BeganAt   *time.Time
	DoneAt    *time.Time
	EndedAt   time.Time
	Outcome   OutcomeKind
	Code      string
	Error     string
	// Stack is where a handler failed, in its own words; empty for nothing.
	Stack  string
	SpanID string
}

// DeadLetter is a job that failed for good, as operators inspect it.
type DeadLetter struct {
	ID        ID
	Type      string
	Tenant    string
	DeadAt    time.Time
	Attempts  int
	LastError string
	// Erased says that the job was blanked, so that it cannot be requeued.
	Erased bool
	// Code and Fingerprint are the error's. Fingerprint is empty until it is filled in.
	Code        string
	Fingerprint string
}
