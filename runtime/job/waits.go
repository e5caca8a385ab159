package job

import (
	"fmt"
	"math"
	"strings"
	"time"
)

// WaitReason says what a job waits for.
type WaitReason string

// The reasons why a job waits.
const (
	// WaitScheduled: its time has not come.
	WaitScheduled WaitReason = "scheduled"
	// WaitHeld: it has no time. A client releases it.
	WaitHeld WaitReason = "held"
	// WaitPredecessors: jobs of its workflow that it comes after have not ended.
	WaitPredecessors WaitReason = "predecessors"
	// WaitRetry: an attempt has failed, and the next one is due later.
	WaitRetry WaitReason = "retry"
	// WaitPaused: an operator has paused its type, plugin, tenant, or everything.
	WaitPaused WaitReason = "paused"
	// WaitUnserved: no live worker has a handler for its type.
	WaitUnserved WaitReason = "unserved"
	// WaitKey: as many jobs of its concurrency key run as may.
	WaitKey WaitReason = "concurrency_key"
	// WaitTenant: as many jobs of its tenant run as may.
	WaitTenant WaitReason = "concurrency_tenant"
	// WaitType: as many jobs of its type run as may.
	WaitType WaitReason = "concurrency_type"
	// WaitRate: as many jobs have started lately as may.
	WaitRate WaitReason = "rate"
	// WaitTurn: other jobs of its lane come first, or the admitter is about to look at it.
	WaitTurn WaitReason = "turn"
	// WaitClaim: it is ready. A worker claims it when the jobs before it are claimed and a
	// slot of its plugin is free.
	WaitClaim WaitReason = "claim"
)

// WaitReasons returns all reasons.
func WaitReasons() []WaitReason {
	return []WaitReason{
		WaitScheduled, WaitHeld, WaitPredecessors, WaitRetry, WaitPaused, WaitUnserved, WaitKey, WaitTenant, WaitType, WaitRate, WaitTurn, WaitClaim,
	}
}

// QueuedReasons returns the reasons for which queued jobs wait. Those of other states wait
// for their time.
func QueuedReasons() []WaitReason { return WaitReasons()[4:] }

// Wait is one thing that a job waits for.
type Wait struct {
	Reason WaitReason
	// Message says it in one sentence, without a full stop.
	Message string
	// Until is when that should be over; zero if nobody knows.
	Until time.Time
	// Pause is what is paused; nil for other reasons.
	Pause *Pause
	// Gate is the one whose slot or rate the job waits for; empty for other reasons.
	Gate Gate
	// Used is how many slots of the gate are taken, and Limit how many there are; nil if any
	// number may run.
	Used  int
	Limit *int
	// Rate is the gate's; nil if there is none.
	Rate *Rate
	// Ahead is how many jobs come first in the same lane or queue, counted up to MaxAhead.
	Ahead int
}

// MaxAhead is up to how many jobs are counted before a waiting one.
const MaxAhead = 1000

// Place is where a waiting job stands, at one moment.
type Place struct {
	// At is the moment, by the database's clock.
	At     time.Time
	State  State
	Type   string
	Tenant string
	// Plugin owns the type; empty if none does.
	Plugin string
	// Served says that a live worker has a handler for the type.
	Served bool
	// RunAt is when the job is due; zero for a held one.
	RunAt time.Time
	// Lane is where the job is parked; empty for a job that is not.
	Lane Gate
	// Ahead is how many jobs come first in its lane or its queue, counted up to MaxAhead.
	Ahead int
	// Capacity is the submission's own limit of its concurrency key; 0 for none.
	Capacity int
	// Used is how many slots of the lane's gate are taken.
	Used int
	// Tokens is how many starts of the lane's gate were left at TokensAt; nil if its rate
	// was never used.
	Tokens   *float64
	TokensAt time.Time
	// Starting is how many jobs have passed the lane's gate and not started yet. It is known
	// only for a gate with a rate.
	Starting int
	// Workflow says what a created job without a time waits for in its workflow; nil if it
	// belongs to none.
	Workflow *WorkflowWait
	// Rules has at least the limit of the lane's gate, and the pauses that concern the job.
	Rules *Rules
}

// Waits returns what a job in the place waits for, the most lasting first; nil for a job
// that does not wait.
func (p Place) Waits() []Wait {
	switch p.State {
	case Created:
		if p.RunAt.IsZero() && p.Workflow != nil {
			return p.Workflow.waits()
		}
		if p.RunAt.IsZero() {
			return []Wait{{Reason: WaitHeld, Message: "held until it is released"}}
		}
		return []Wait{{Reason: WaitScheduled, Message: "scheduled for " + moment(p.RunAt), Until: p.RunAt}}
	case Retry:
		return []Wait{{Reason: WaitRetry, Message: "the next attempt is due at " + moment(p.RunAt), Until: p.RunAt}}
	case Queued:
		blocks, next := p.blocks(), p.next()
		if len(blocks) > 0 && blocks[0].Reason == WaitPaused && next.soon() {
			return blocks
		}
		return append(blocks, next)
	case Running, Succeeded, Dead, Canceled:
	}
	return nil
}

// blocks are what keeps even the first of a queue from starting.
func (p Place) blocks() (waits []Wait) {
	for _, of := range []struct {
		scope PauseScope
		name  string
	}{{PauseAll, ""}, {PausePlugin, p.Plugin}, {PauseType, p.Type}, {PauseTenant, p.Tenant}} {
		if pause, paused := p.Rules.Pause(of.scope, of.name); paused {
			waits = append(waits, Wait{Reason: WaitPaused, Message: pause.message(), Until: pause.Until, Pause: &pause})
		}
	}
	if !p.Served {
		waits = append(waits, Wait{Reason: WaitUnserved, Message: "no live worker serves the type " + p.Type})
	}
	return waits
}

// soon reports whether nothing but the admitter or a worker is waited for, which a pause
// makes untrue.
func (w Wait) soon() bool {
	return (w.Reason == WaitTurn || w.Reason == WaitClaim) && w.Ahead == 0
}

// next is what the job passes next.
func (p Place) next() Wait {
	switch {
	case p.Lane == "" && p.Ahead == 0:
		return Wait{Reason: WaitClaim, Message: "queued, next to be claimed"}
	case p.Lane == "":
		return Wait{Reason: WaitClaim, Message: "queued" + behind(p.Ahead), Ahead: p.Ahead}
	}
	w := Wait{Gate: p.Lane.Counted(), Used: p.Used, Ahead: p.Ahead}
	if w.Gate == "" {
		return p.turn(Wait{Ahead: p.Ahead})
	}
	limit, _ := p.Rules.Limit(w.Gate)
	w.Limit, w.Rate = limit.Concurrency, limit.Rate
	if p.Capacity > 0 && w.Gate.Kind() == GateKey {
		w.Limit = &p.Capacity
	}
	switch {
	case w.Limit != nil && *w.Limit == 0:
		w.Reason, w.Message = slotReason(w.Gate), "the limit of "+w.Gate.words()+" is 0"
	case w.Limit != nil && p.Used >= *w.Limit:
		w.Reason = slotReason(w.Gate)
		w.Message = fmt.Sprintf("waits for a slot of %s (%d of %d running)%s", w.Gate.words(), p.Used, *w.Limit, behind(p.Ahead))
	case w.Rate != nil && p.untilStart(*w.Rate) > 0:
		wait := p.untilStart(*w.Rate)
		w.Reason, w.Until = WaitRate, p.At.Add(wait)
		w.Message = fmt.Sprintf("rate limit of %s (%d/%s), %s%s", w.Gate.words(), w.Rate.Count, ShortDuration(w.Rate.Period),
			about(wait, p.Ahead >= MaxAhead), behind(p.Ahead))
	default:
		return p.turn(w)
	}
	return w
}

// turn makes the wait that of a job whose lane has room.
func (p Place) turn(w Wait) Wait {
	w.Reason, w.Message = WaitTurn, "about to be admitted"
	if p.Ahead > 0 {
		w.Message = "waits for its turn" + behind(p.Ahead)
	}
	return w
}

// untilStart is how long it takes until the rate allows the job: a start for each job that
// has passed the gate, for each before this one, and for itself.
func (p Place) untilStart(rate Rate) time.Duration {
	each := rate.Period.Seconds() / float64(max(rate.Count, 1))
	left := float64(max(rate.Burst, 1))
	if p.Tokens != nil {
		left = min(left, *p.Tokens+max(p.At.Sub(p.TokensAt).Seconds(), 0)/each)
	}
	missing := float64(p.Starting+p.Ahead+1) - left
	if missing <= 0 {
		return 0
	}
	const most = float64(math.MaxInt64 / 2)
	return time.Duration(min(missing*each*float64(time.Second), most))
}

// Counted is the gate whose slots the jobs of a lane wait for; empty if they wait for none.
func (g Gate) Counted() Gate {
	switch {
	case g.Counts():
		return g
	case g.Kind() == GateNew:
		return NewGate(GateKey, g.Owner(), g.Name())
	}
	return ""
}

// LimitOf is the scope and the name of the limit of a gate or a lane. They are empty if
// nothing limits it.
func (g Gate) LimitOf() (scope LimitScope, name string) {
	counted := g.Counted()
	switch counted.Kind() {
	case GateKey:
		return LimitKey, KeyClass(counted.Name())
	case GateTenant:
		return LimitTenant, counted.Name()
	case GateType:
		return LimitType, counted.Name()
	default:
		return "", ""
	}
}

// words names the gate to people.
func (g Gate) words() string {
	switch g.Kind() {
	case GateKey:
		return "key " + g.Name()
	case GateTenant:
		return "tenant " + g.Name()
	case GateType:
		return "job type " + g.Name()
	default:
		return string(g)
	}
}

func slotReason(gate Gate) WaitReason {
	switch gate.Kind() {
	case GateTenant:
		return WaitTenant
	case GateType:
		return WaitType
	default:
		return WaitKey
	}
}

// message says what is paused, by whom, why and until when.
func (p Pause) message() string {
	var text strings.Builder
	switch p.Scope {
	case PauseAll:
		text.WriteString("everything paused")
	case PausePlugin:
		text.WriteString("plugin " + p.Name + " paused")
	case PauseType:
		text.WriteString("type paused")
	case PauseTenant:
		text.WriteString("tenant paused")
	case PauseWorker:
		text.WriteString("worker drained")
	}
	if p.By != "" {
		text.WriteString(" by " + p.By)
	}
	if !p.Until.IsZero() {
		text.WriteString(" until " + moment(p.Until))
	}
	if p.Reason != "" {
		text.WriteString(": " + p.Reason)
	}
	return text.String()
}

func behind(ahead int) string {
	switch {
	case ahead == 0:
		return ""
	case ahead == 1:
		return ", behind 1 job"
	case ahead >= MaxAhead:
		return fmt.Sprintf(", behind %d jobs or more", MaxAhead)
	}
	return fmt.Sprintf(", behind %d jobs", ahead)
}

// about says roughly how long, or how long at least.
func about(wait time.Duration, least bool) string {
	word := "about "
	if least {
		word = "at least "
	}
	switch {
	case wait < time.Second:
		return "less than 1 s"
	case wait < time.Minute:
		return fmt.Sprintf("%s%.0f s", word, math.Ceil(wait.Seconds()))
	}
	return word + ShortDuration(wait.Round(time.Second))
}

func moment(t time.Time) string { return t.UTC().Format(time.RFC3339) }
