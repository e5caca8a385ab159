package job

import (
	"maps"
	"net/url"
	"slices"
	"strings"
	"time"
)

// Terms are what a submission asks for besides being run: how it shares with others. The
// zero value asks for nothing. They are kept with the job as JSON.
type Terms struct {
	// ConcurrencyKey names what the job uses, such as a customer or an account. Jobs of a
	// tenant with the same key share its limits, whatever their types. KeyClass is its
	// class.
	ConcurrencyKey string `json:"concurrencyKey,omitempty"`
	// ConcurrencyLimit is how many jobs of the key may run when this one starts, itself
	// included; 0 for the limit of the key's class.
	ConcurrencyLimit int `json:"concurrencyLimit,omitempty"`
	// OnConflict is what happens when the key is full; empty for the limit's own.
	OnConflict OnConflict `json:"onConflict,omitempty"`
	// FairnessKey is who takes a turn; empty for the tenant, if the type is fair.
	FairnessKey string `json:"fairnessKey,omitempty"`
}

// Unique keeps out other jobs of the same tenant and type. Exactly one of For and WhileOpen
// is set.
type Unique struct {
	// For is how long after the submission.
	For time.Duration
	// WhileOpen is as long as the job waits or runs.
	WhileOpen bool
	// Digest is SHA-256 over what must differ: tenant, type, and the chosen members of the
	// payload.
	Digest [32]byte
}

// OnConflict is what happens to a job whose concurrency key is full.
type OnConflict string

// What happens when a concurrency key is full.
const (
	// ConflictQueue: the job waits. This is the default.
	ConflictQueue OnConflict = "queue"
	// ConflictCancelNewcomer: the job is canceled.
	ConflictCancelNewcomer OnConflict = "cancel_newcomer"
	// ConflictCancelOldest: the job of the key that was admitted first is canceled, and
	// this one waits for its slot.
	ConflictCancelOldest OnConflict = "cancel_oldest"
)

// LimitScope is what a limit is of.
type LimitScope string

// The scopes of limits.
const (
	LimitType   LimitScope = "type"
	LimitTenant LimitScope = "tenant"
	// LimitKey is of a class of concurrency keys. It applies to each key of the class.
	LimitKey LimitScope = "key"
	// LimitFairness is of a fairness key. It has a weight only.
	LimitFairness LimitScope = "fairness"
)

// EveryName is the name of the limit for all that have none of their own: each job type,
// each tenant, each class of keys or each fairness key.
const EveryName = "*"

// Limit bounds the jobs of a type, of a tenant, or of each key of a class, across all
// orchestrators.
type Limit struct {
	Scope LimitScope
	// Name of the type, the tenant, the class or the fairness key; EveryName for all
	// others.
	Name string
	// Concurrency is how many may be running or about to; nil for any number.
	Concurrency *int
	// Rate is how many may start in a period; nil for any number.
	Rate *Rate
	// OnConflict is for keys only; empty for ConflictQueue.
	OnConflict OnConflict
	// Weight is the share of a tenant or a fairness key, from 1 to 1000; 0 for 1.
	Weight int
	// Fair is for types only: tenants take turns.
	Fair bool
	// Configured limits come from the configuration and cannot be changed by the API.
	Configured bool
	UpdatedBy  string
	UpdatedAt  time.Time
}

// LimitChange is what a configuration has done to a limit: set it, or a different one, or
// removed it.
type LimitChange struct {
	Scope   LimitScope
	Name    string
	Removed bool
}

// Rate is a number of starts in a period: no window of any length W has more than
// Count*W/Period + Burst starts.
type Rate struct {
	Count  int
	Period time.Duration
	// Burst is how many may start at once after a quiet time; at least 1.
	Burst int
}

// PauseScope is what a pause is of.
type PauseScope string

// The scopes of pauses.
const (
	PauseType   PauseScope = "type"
	PausePlugin PauseScope = "plugin"
	PauseTenant PauseScope = "tenant"
	PauseAll    PauseScope = "all"
	// PauseWorker is the drain of one worker, which Pause.Drain says as well. It is kept with
	// the worker, and ends with it.
	PauseWorker PauseScope = "worker"
)

// Pause keeps jobs from starting until it ends. Submission goes on.
type Pause struct {
	Scope PauseScope
	// Name is empty for PauseAll.
	Name   string
	Reason string
	By     string
	Since  time.Time
	// Until is zero if only an operator ends the pause.
	Until time.Time
	// Drain says that running attempts were asked to stop when the pause began; they are
	// given back, uncharged.
	Drain bool
}

// GateKind is what kind of gate a gate is.
type GateKind string

// The kinds of gates. GateKey, GateTenant and GateType count: an admitted job holds a slot
// of each. The others have lanes only, which jobs pass through.
const (
	// GateFair is where a job gets its turn.
	GateFair GateKind = "fair"
	// GateNew is where a job arrives that may cancel another, or be canceled, if its key is
	// full. It is followed by the key's gate.
	GateNew GateKind = "new"
	// GatePaused is where jobs of a paused tenant wait.
	GatePaused GateKind = "paused"
	// GateStopped is where jobs of a paused type wait. It is never one of a job's gates: the
	// admitter puts the job there, before it takes a slot.
	GateStopped GateKind = "stopped"
	GateKey     GateKind = "key"
	GateTenant  GateKind = "tenant"
	GateType    GateKind = "type"
)

// Gate is one that a job must pass: its kind, a colon, and a name.
type Gate string

// ownerEscapes are undone by url.PathUnescape, and escape no more than they must: gates are
// keys of indexes, whose rows have at most 2,704 bytes.
var ownerEscapes = strings.NewReplacer("%", "%25", "/", "%2F")

// NewGate is the gate of a kind. Owner is the tenant of a key or a fairness key, and empty
// for the other kinds. Names are not ambiguous: the owner is escaped.
func NewGate(kind GateKind, owner, name string) Gate {
	switch kind {
	case GateKey, GateFair, GateNew:
		return Gate(string(kind) + ":" + ownerEscapes.Replace(owner) + "/" + name)
	default:
		return Gate(string(kind) + ":" + name)
	}
}

// Kind is the part before the first colon.
func (g Gate) Kind() GateKind {
	kind, _, _ := strings.Cut(string(g), ":")
	return GateKind(kind)
}

// Name is the type, the tenant, or the key without its owner.
func (g Gate) Name() string {
	_, name, _ := strings.Cut(string(g), ":")
	switch g.Kind() {
	case GateKey, GateFair, GateNew:
		_, name, _ = strings.Cut(name, "/")
	default:
	}
	return name
}

// Owner is the tenant of a key or a fairness key; empty for the other kinds.
func (g Gate) Owner() string {
	switch g.Kind() {
	case GateKey, GateFair, GateNew:
		_, name, _ := strings.Cut(string(g), ":")
		owner, _, _ := strings.Cut(name, "/")
		owner, _ = url.PathUnescape(owner)
		return owner
	default:
		return ""
	}
}

// Counts reports whether admitted jobs hold a slot of the gate.
func (g Gate) Counts() bool {
	switch g.Kind() {
	case GateKey, GateTenant, GateType:
		return true
	default:
		return false
	}
}

// KeyClass is the class of a concurrency key: the part before the first colon, or the whole
// key if it has none.
func KeyClass(key string) string {
	class, _, _ := strings.Cut(key, ":")
	return class
}

// Rules are the limits and pauses at one moment. They do not change; nil has none.
type Rules struct {
	limits map[LimitScope]map[string]Limit
	pauses map[PauseScope]map[string]Pause
}

// NewRules returns the rules of the limits and pauses.
func NewRules(limits []Limit, pauses []Pause) *Rules {
	r := &Rules{limits: make(map[LimitScope]map[string]Limit), pauses: make(map[PauseScope]map[string]Pause)}
	for _, limit := range limits {
		if r.limits[limit.Scope] == nil {
			r.limits[limit.Scope] = make(map[string]Limit)
		}
		r.limits[limit.Scope][limit.Name] = limit
	}
	for _, pause := range pauses {
		if r.pauses[pause.Scope] == nil {
			r.pauses[pause.Scope] = make(map[string]Pause)
		}
		r.pauses[pause.Scope][pause.Name] = pause
	}
	return r
}

// limit is the limit of the name, or else the one for every name.
func (r *Rules) limit(scope LimitScope, name string) (Limit, bool) {
	if r == nil {
		return Limit{}, false
	}
	limit, found := r.limits[scope][name]
	if !found {
		limit, found = r.limits[scope][EveryName]
	}
	return limit, found
}

// Limit is what bounds a gate that counts, if anything does.
func (r *Rules) Limit(gate Gate) (Limit, bool) {
	switch gate.Kind() {
	case GateKey:
		return r.limit(LimitKey, KeyClass(gate.Name()))
	case GateTenant:
		return r.limit(LimitTenant, gate.Name())
	case GateType:
		return r.limit(LimitType, gate.Name())
	default:
		return Limit{}, false
	}
}

// Weight is the share of a fair gate; 1 by default.
func (r *Rules) Weight(gate Gate) int {
	scope, name := LimitFairness, gate.Name()
	if name == "" {
		scope, name = LimitTenant, gate.Owner()
	}
	limit, _ := r.limit(scope, name)
	return max(limit.Weight, 1)
}

// Pause is the pause of the name, if it is paused. By the local clock, pauses whose time is
// over may still be there for a moment.
func (r *Rules) Pause(scope PauseScope, name string) (Pause, bool) {
	if r == nil {
		return Pause{}, false
	}
	pause, found := r.pauses[scope][name]
	return pause, found
}

// AnyPaused reports whether there is a pause of the scope.
func (r *Rules) AnyPaused(scope PauseScope) bool { return r != nil && len(r.pauses[scope]) > 0 }

// Paused are the names of what is paused by pauses of the scope, sorted.
func (r *Rules) Paused(scope PauseScope) []string {
	if r == nil {
		return nil
	}
	return slices.Sorted(maps.Keys(r.pauses[scope]))
}

// Gates are what a job must pass, in the order of a job's gates; nil for nothing. A job
// with a concurrency key always has the key's gate, so that a limit can be set later.
func (r *Rules) Gates(jobType, tenant string, terms Terms) []Gate {
	var gates []Gate
	ofType, bounded := r.limit(LimitType, jobType)
	if _, paused := r.Pause(PauseTenant, tenant); paused {
		gates = append(gates, NewGate(GatePaused, "", tenant))
	}
	if terms.FairnessKey != "" || ofType.Fair {
		gates = append(gates, NewGate(GateFair, tenant, terms.FairnessKey))
	}
	if terms.ConcurrencyKey != "" {
		key := NewGate(GateKey, tenant, terms.ConcurrencyKey)
		if r.OnConflict(key, terms.OnConflict) != ConflictQueue {
			gates = append(gates, NewGate(GateNew, tenant, terms.ConcurrencyKey))
		}
		gates = append(gates, key)
	}
	if limit, found := r.limit(LimitTenant, tenant); found && limit.bounds() {
		gates = append(gates, NewGate(GateTenant, "", tenant))
	}
	if bounded && ofType.bounds() {
		gates = append(gates, NewGate(GateType, "", jobType))
	}
	return gates
}

// OnConflict is what happens when the key is full: what the job asks for, or else what the
// limit of the key's class says.
func (r *Rules) OnConflict(key Gate, asked OnConflict) OnConflict {
	if asked != "" {
		return asked
	}
	if limit, found := r.Limit(key); found && limit.OnConflict != "" {
		return limit.OnConflict
	}
	return ConflictQueue
}

// Held reports whether a claimed job with the gates may not start: its tenant is paused, or
// a limit was set on its type or tenant that it was not submitted under. Then next are the
// gates that it must pass first, in the order of Gates.
func (r *Rules) Held(jobType, tenant string, gates []Gate) (next []Gate, held bool) {
	if r == nil {
		return nil, false
	}
	if _, paused := r.Pause(PauseTenant, tenant); paused {
		next = append(next, NewGate(GatePaused, "", tenant))
	}
	if limit, found := r.limit(LimitTenant, tenant); found && limit.bounds() {
		next = append(next, NewGate(GateTenant, "", tenant))
	}
	if limit, found := r.limit(LimitType, jobType); found && limit.bounds() {
		next = append(next, NewGate(GateType, "", jobType))
	}
	next = slices.DeleteFunc(next, func(gate Gate) bool { return gate.Counts() && slices.Contains(gates, gate) })
	if len(next) == 0 {
		return nil, false
	}
	for _, gate := range gates {
		if gate.Kind() != GatePaused {
			next = append(next, gate)
		}
	}
	order := []GateKind{GatePaused, GateFair, GateNew, GateKey, GateTenant, GateType}
	slices.SortStableFunc(next, func(a, b Gate) int { return slices.Index(order, a.Kind()) - slices.Index(order, b.Kind()) })
	return next, true
}

// bounds reports whether the limit can keep jobs from starting.
func (l *Limit) bounds() bool { return l.Concurrency != nil || l.Rate != nil }
