package store

import (
	"bytes"
	"cmp"
	"fmt"
	"iter"
	"slices"
	"time"

	"github.com/holdfast-jobs/holdfast/runtime/job"
)

const (
	// roundJobs is about how many jobs a round looks at, and minLaneJobs how many of a lane
	// at least, if there is room for them.
	roundJobs   = 1000
	minLaneJobs = 4
	// turnLength is how far a job moves the virtual time of its fairness key, if its weight
	// is 1. Low-water marks in the ready list allow for a thousand jobs that were admitted
	// late.
	turnLength = time.Millisecond
	// movePause is how long a lane that has room waits for each job that moved from it to
	// another gate, before those behind are looked at: 5000 a second go on at most.
	movePause = 200 * time.Microsecond
)

// admission decides one round of the admitter: which parked jobs become ready, and which
// wait in which lane. It neither reads the database nor writes to it.
type admission struct {
	now    time.Time
	rules  *job.Rules
	gates  map[job.Gate]*gateState
	lanes  map[job.Gate]*laneState
	queues map[queue]*virtualTime
	// oneKind says that the lanes looked at are those of gates of one kind.
	oneKind bool

	// atOnce are jobs that were admitted when their lane was read, admitted all others.
	atOnce, admitted []head

	moved    []head // with the lane that they go to
	canceled []conflict
	oldest   map[job.Gate]int // by gate of newcomers: how many jobs must make room
	// tracked are the admitted jobs that a gate must know.
	tracked []trackedJob
	rewake  []job.Gate
}

// queue is where jobs take turns.
type queue struct {
	jobType string
	urgency int16
}

// head is a job at the head of a lane.
type head struct {
	id       job.ID
	queue    queue
	lane     job.Gate
	position time.Time
	turn     bool
	tenant   string
	gates    []job.Gate
	// capacity is the job's own limit of its concurrency key; 0 for none.
	capacity   int
	onConflict job.OnConflict
	parkedAt   time.Time
	// newcomer says that the job was never claimed. It is only known of jobs that have a
	// gate for newcomers ahead.
	newcomer bool
}

// conflict is a newcomer that is canceled.
type conflict struct {
	head
	reason string
}

// trackedJob is an admitted job that a gate must know.
type trackedJob struct {
	gate job.Gate
	of   head
}

// laneState is how far a lane was read.
type laneState struct {
	// asked is how many jobs were asked for, read how many there were.
	asked, read int
	// moved are those that wait at another gate now.
	moved int
	// capacity is that of the last job looked at.
	capacity int
	// blocked says that the lane's own gate is full.
	blocked bool
}

// virtualTime is that of a queue: start is the turn of the job that is claimed next. last
// is when the last turns of fairness keys end, changed are those that had one this round.
type virtualTime struct {
	start   time.Time
	last    map[job.Gate]time.Time
	changed map[job.Gate]bool
}

func newAdmission(now time.Time, rules *job.Rules) *admission {
	return &admission{
		now: now, rules: rules, gates: make(map[job.Gate]*gateState), lanes: make(map[job.Gate]*laneState),
		queues: make(map[queue]*virtualTime), oldest: make(map[job.Gate]int),
	}
}

// know adds a gate: what is stored of it, and which jobs it has admitted.
func (a *admission) know(gate job.Gate, stored *slotsRow, starts []startRow) *gateState {
	g := &gateState{gate: gate, stored: stored}
	if stored != nil {
		g.used = int(stored.Used)
		if stored.WakeAt != nil {
			g.wakeAt = *stored.WakeAt
		}
	}
	g.limit, _ = a.rules.Limit(gate)
	if g.limit.Rate != nil {
		g.charge(a.now, starts)
	}
	a.gates[gate] = g
	return g
}

// room is how many jobs of a lane to look at, at most. It is not known if the lane's first
// job says itself how many of its key may be active.
func (a *admission) room(lane job.Gate, most int) (room int, known bool) {
	switch {
	case a.rules.AnyPaused(job.PauseAll),
		lane.Kind() == job.GatePaused && a.paused(job.PauseTenant, lane.Name()),
		lane.Kind() == job.GateStopped && a.paused(job.PauseType, lane.Name()):
		return 0, true
	case !lane.Counts():
		return most, true
	}
	g := a.gates[lane]
	if g.limit.Rate != nil {
		if g.startsLeft() < 1 {
			g.waitForStart(a.now)
			return 0, true
		}
		most = min(most, int(g.startsLeft()))
	}
	if g.deep && !g.full(0) {
		return most, true
	}
	if g.limit.Concurrency == nil {
		return most, g.limit.Rate != nil || lane.Kind() != job.GateKey
	}
	return max(min(*g.limit.Concurrency-g.used, most), 0), true
}

// plain reports whether a job that has no gate but that of its lane may pass once there is
// room. It may not if jobs of other kinds of lanes could want the same slot in this round,
// and be more urgent.
func (a *admission) plain(lane job.Gate) bool {
	g := a.gates[lane]
	if !a.oneKind || !lane.Counts() || g.limit.Rate != nil || g.deep || a.rules.AnyPaused(job.PauseType) {
		return false
	}
	switch lane.Kind() {
	case job.GateKey:
		return !a.paused(job.PauseTenant, lane.Owner())
	case job.GateTenant:
		return !a.paused(job.PauseTenant, lane.Name())
	default:
		return !a.rules.AnyPaused(job.PauseTenant)
	}
}

// read counts a job that was read from its lane, where so many were asked for. It reports
// whether the job is to be decided about, because it was not admitted at once.
func (a *admission) read(j head, asked int, admitted bool) (undecided bool) {
	lane := a.lanes[j.lane]
	if lane == nil {
		lane = &laneState{asked: asked}
		a.lanes[j.lane] = lane
	}
	lane.read++
	if admitted {
		lane.capacity = j.capacityAt(j.lane)
		a.gates[j.lane].used++
		a.atOnce = append(a.atOnce, j)
	}
	return !admitted
}

// ready are all jobs that were admitted.
func (a *admission) ready() iter.Seq[head] {
	return func(yield func(head) bool) {
		for _, part := range [][]head{a.atOnce, a.admitted} {
			for i := range part {
				if !yield(part[i]) {
					return
				}
			}
		}
	}
}

func (a *admission) paused(scope job.PauseScope, name string) bool {
	_, paused := a.rules.Pause(scope, name)
	return paused
}

// nextGate returns the job's gate of the kind, if it has one and has not passed it yet.
func (j *head) nextGate(kind job.GateKind) (job.Gate, bool) {
	if j.lane.Counts() || j.lane.Kind() == job.GateNew && kind == job.GateFair {
		return "", false
	}
	if kind == job.GateFair && j.turn && j.lane.Kind() == job.GateStopped {
		return "", false // it got its turn before the pause, in which nobody of its type has one
	}
	// The admitter itself parks jobs of a paused tenant or type that have passed the others.
	if kind == job.GateNew && !slices.Contains(j.gates, j.lane) {
		return "", false
	}
	at := slices.IndexFunc(j.gates, func(g job.Gate) bool { return g.Kind() == kind })
	if at < 0 {
		return "", false
	}
	return j.gates[at], true
}

// decide decides about the heads of lanes. Everything that it needs is known.
func (a *admission) decide(heads []head) {
	for i := range heads {
		if gate, fair := heads[i].nextGate(job.GateFair); fair {
			a.giveTurn(&heads[i], gate)
		}
	}
	slices.SortStableFunc(heads, func(a, b head) int {
		return cmp.Or(cmp.Compare(a.queue.urgency, b.queue.urgency), a.position.Compare(b.position), bytes.Compare(a.id[:], b.id[:]))
	})
	for _, next := range heads {
		a.place(next)
	}
	for gate, lane := range a.lanes {
		a.lookAgain(gate, lane)
	}
	slices.Sort(a.rewake)
}

// giveTurn is start-time fair queueing (Goyal, Vin, Cheng 1996): a job's turn is the
// virtual time of its queue, or the end of the turn before of its key if that is later. It
// moves the key on by an amount that is smaller the greater its weight.
func (a *admission) giveTurn(j *head, gate job.Gate) {
	times := a.queues[j.queue]
	start := times.start
	if last := times.last[gate]; last.After(start) {
		start = last
	}
	j.position, j.turn = start, true
	length := (turnLength / time.Duration(a.rules.Weight(gate))).Round(time.Microsecond)
	times.last[gate], times.changed[gate] = start.Add(length), true
}

// place admits a job, moves it to the lane of the first gate that stops it, or cancels it.
// If that is the gate of its own lane, the others there wait behind it.
func (a *admission) place(j head) {
	lane := a.lanes[j.lane]
	if lane.blocked {
		return
	}
	if gate, conflicts := j.nextGate(job.GateNew); conflicts {
		if reason := a.resolve(j, gate); reason != "" {
			a.canceled = append(a.canceled, conflict{j, reason})
			return
		}
	}
	lane.capacity = j.capacityAt(j.lane)
	stopped, at := a.stops(j)
	switch {
	case !stopped:
		a.admit(j)
	case at == j.lane:
		lane.blocked = true
	default:
		lane.moved++
		j.lane = at
		a.moved = append(a.moved, j)
	}
}

// resolve decides what happens to a newcomer if its key is full. It returns the reason if
// it is canceled.
func (a *admission) resolve(j head, gate job.Gate) (reason string) {
	key := job.NewGate(job.GateKey, gate.Owner(), gate.Name())
	g := a.gates[key]
	if g == nil || !j.newcomer || !g.full(j.capacity) {
		return ""
	}
	switch a.rules.OnConflict(key, j.onConflict) {
	case job.ConflictCancelNewcomer:
		limit, _ := g.bound(j.capacity)
		return fmt.Sprintf("concurrency key %q is full (%d of %d), and onConflict is %s",
			key.Name(), g.used, limit, job.ConflictCancelNewcomer)
	case job.ConflictCancelOldest:
		a.oldest[gate]++
	case job.ConflictQueue:
	}
	return ""
}

// stops returns the first gate at which the job has to wait.
func (a *admission) stops(j head) (stopped bool, at job.Gate) {
	if a.paused(job.PauseTenant, j.tenant) {
		return true, job.NewGate(job.GatePaused, "", j.tenant)
	}
	if a.paused(job.PauseType, j.queue.jobType) {
		return true, job.NewGate(job.GateStopped, "", j.queue.jobType)
	}
	for _, gate := range j.gates {
		if !gate.Counts() {
			continue
		}
		g := a.gates[gate]
		if g.full(j.capacityAt(gate)) {
			return true, gate
		}
		if g.limit.Rate != nil && g.startsLeft() < 1 {
			g.waitForStart(a.now)
			return true, gate
		}
	}
	return false, ""
}

// capacityAt is the job's own limit of the gate.
func (j *head) capacityAt(gate job.Gate) int {
	if gate.Kind() == job.GateKey {
		return j.capacity
	}
	return 0
}

func (a *admission) admit(j head) {
	for _, gate := range j.gates {
		if gate.Kind() == job.GateNew {
			a.tracked = append(a.tracked, trackedJob{gate, j})
		}
		if !gate.Counts() {
			continue
		}
		g := a.gates[gate]
		g.used++
		if g.limit.Rate != nil {
			g.outstanding++
			a.tracked = append(a.tracked, trackedJob{gate, j})
		}
	}
	a.admitted = append(a.admitted, j)
}

// lookAgain wakes a lane in which there may be jobs that can go on.
func (a *admission) lookAgain(gate job.Gate, lane *laneState) {
	if lane.read == 0 || lane.read < lane.asked || lane.blocked {
		return
	}
	if g := a.gates[gate]; g != nil {
		switch {
		case g.full(lane.capacity): // the next slot that is freed wakes it
			return
		case g.limit.Rate != nil && g.startsLeft() < 1:
			g.waitForStart(a.now)
			return
		case lane.moved == lane.read:
			pause := time.Duration(lane.moved) * movePause
			if g.limit.Rate != nil {
				pause = max(pause, ratePause)
			}
			g.lookAt(a.now.Add(pause))
			return
		}
	}
	a.rewake = append(a.rewake, gate)
}
