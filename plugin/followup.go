package plugin

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"github.com/holdfast-jobs/holdfast/plugin/internal/handlerv1"
)

// FollowUp is a job that a handler submits; see Submit. Only Type is required. A field that
// is zero takes the default, as a member does that a client leaves out of POST /jobs: that of
// the job type, or none. The job belongs to the tenant of the job that submits it.
type FollowUp struct {
	Type string
	// Payload is encoded as JSON. A json.RawMessage is taken as it is.
	Payload any
	// Key is the idempotency key: if the tenant has a job with it already, no job is made.
	// Within one attempt you need none.
	Key string
	// Priority is from -32767 to 32767; higher is more urgent.
	Priority int
	// RunAt or Delay say not to start before; at most one of the two.
	RunAt time.Time
	Delay time.Duration
	// Hold keeps the job until somebody releases it.
	Hold bool
	// MaxAttempts and Timeout bound its attempts.
	MaxAttempts int
	Timeout     time.Duration
	// Tags are words to find the job by.
	Tags []string

	// ConcurrencyKey, ConcurrencyLimit, OnConflict and FairnessKey say how the job shares
	// with others. They are the keys themselves, not places in the payload as in Terms.
	ConcurrencyKey   string
	ConcurrencyLimit int
	OnConflict       OnConflict
	FairnessKey      string

	// ExpiresAt or TTL cancel the job unless it has started by then; at most one of the two.
	ExpiresAt time.Time
	TTL       time.Duration

	// UniqueFor or UniqueWhileOpen make no other job like this one: for so long, or while it
	// waits or runs. At most one of the two. UniqueBy are JSON Pointers to what must be equal
	// in the payloads of jobs that are alike; by default, the whole payload is.
	UniqueFor       time.Duration
	UniqueWhileOpen bool
	UniqueBy        []string

	// CallbackURL is told when the job has ended: an http or https URL of at most 2,000 bytes
	// without a user.
	CallbackURL string
}

// Submit makes jobs that follow the one that ctx belongs to. They become real together with
// the success of this attempt, in one transaction, and never otherwise: if the attempt fails,
// snoozes, is canceled or lost, there are none, and the next attempt submits its own. So each
// success has one set of follow-ups, however often the job was attempted.
//
// Submit does not wait. It fails at once if a payload cannot be encoded, if there are more
// follow-ups than the orchestrator accepts (1,000 by default, 4 MiB of JSON together), outside
// of an attempt, and after its end. Then it has added none of the jobs. The error for too many
// is Permanent with the code followups_too_large.
//
// The orchestrator checks the jobs as it does those of clients, when the attempt has
// succeeded. If it refuses one, the attempt fails with the code followups_refused instead,
// for good. Only if no handler has declared the job type, it fails as by any other error, and
// is retried.
func Submit(ctx context.Context, jobs ...FollowUp) error {
	a := current(ctx)
	if a == nil {
		return errors.New("submit: the context does not belong to an attempt")
	}
	encoded := make([][]byte, len(jobs))
	for i := range jobs {
		one, err := jobs[i].encode()
		if err != nil {
			return fmt.Errorf("submit %s: %w", jobs[i].Type, err)
		}
		encoded[i] = one
	}
	if err := a.submit(encoded); err != nil {
		return fmt.Errorf("submit: %w", err)
	}
	return nil
}

// submission is a FollowUp as POST /jobs takes it.
type submission struct {
	Type             string          `json:"jobType"`
	Payload          json.RawMessage `json:"payload,omitempty"`
	Key              string          `json:"idempotencyKey,omitempty"`
	Priority         int             `json:"priority,omitempty"`
	RunAt            *time.Time      `json:"runAt,omitempty"`
	Delay            duration        `json:"delay,omitempty"`
	Hold             bool            `json:"hold,omitempty"`
	MaxAttempts      int             `json:"maxAttempts,omitempty"`
	Timeout          duration        `json:"timeout,omitempty"`
	Tags             []string        `json:"tags,omitempty"`
	ConcurrencyKey   string          `json:"concurrencyKey,omitempty"`
	ConcurrencyLimit int             `json:"concurrencyLimit,omitempty"`
	OnConflict       OnConflict      `json:"onConflict,omitempty"`
	FairnessKey      string          `json:"fairnessKey,omitempty"`
	ExpiresAt        *time.Time      `json:"expiresAt,omitempty"`
	TTL              duration        `json:"ttl,omitempty"`
	UniqueFor        duration        `json:"uniqueFor,omitempty"`
	UniqueWhile      string          `json:"uniqueWhile,omitempty"`
	UniqueBy         []string        `json:"uniqueBy,omitempty"`
	CallbackURL      string          `json:"callbackUrl,omitempty"`
}

// duration is in JSON as Go writes it, such as "1m30s".
type duration time.Duration

func (d duration) MarshalText() ([]byte, error) { return []byte(time.Duration(d).String()), nil }

func (f *FollowUp) encode() ([]byte, error) {
	if f.Type == "" {
		return nil, errors.New("the follow-up has no type")
	}
	payload, err := json.Marshal(f.Payload)
	if err != nil {
		return nil, fmt.Errorf("payload: %w", err)
	}
	s := submission{
		Type: f.Type, Payload: payload, Key: f.Key, Priority: f.Priority,
		RunAt: atTime(f.RunAt), Delay: duration(f.Delay), Hold: f.Hold,
		MaxAttempts: f.MaxAttempts, Timeout: duration(f.Timeout), Tags: f.Tags,
		ConcurrencyKey: f.ConcurrencyKey, ConcurrencyLimit: f.ConcurrencyLimit, OnConflict: f.OnConflict, FairnessKey: f.FairnessKey,
		ExpiresAt: atTime(f.ExpiresAt), TTL: duration(f.TTL), UniqueFor: duration(f.UniqueFor), UniqueBy: f.UniqueBy,
		CallbackURL: f.CallbackURL,
	}
	if f.UniqueWhileOpen {
		s.UniqueWhile = "open"
	}
	return encode(s, maxValue)
}

// atTime is nil for the zero time.
func atTime(t time.Time) *time.Time {
	if t.IsZero() {
		return nil
	}
	return &t
}

// followUps are what an attempt has submitted. The attempt's mutex guards them.
type followUps struct {
	all   [][]byte
	bytes int
	ended bool
}

// submit adds follow-ups, or none of them.
func (a *attempt) submit(jobs [][]byte) error {
	most := a.session.limits
	a.mu.Lock()
	defer a.mu.Unlock()
	f := &a.followUps
	bytes := f.bytes
	for _, one := range jobs {
		bytes += len(one)
	}
	var problem error
	switch {
	case f.ended:
		return errEnded
	case most.followUps == 0:
		return errors.New("the orchestrator is too old to accept follow-ups")
	case len(f.all)+len(jobs) > most.followUps:
		problem = fmt.Errorf("%d follow-ups are more than %d", len(f.all)+len(jobs), most.followUps)
	case bytes > most.followUpBytes:
		problem = tooLargeError{bytes: bytes, most: most.followUpBytes}
	}
	if problem != nil {
		return Code(Permanent(problem), codeFollowUpsTooLarge)
	}
	f.all, f.bytes = append(f.all, jobs...), bytes
	return nil
}

// attach ends the submitting, and adds what was submitted to a success.
func (a *attempt) attach(ended *handlerv1.Outcome) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.followUps.ended = true
	if succeeded := ended.GetSucceeded(); succeeded != nil {
		succeeded.FollowUps = a.followUps.all
	}
}
