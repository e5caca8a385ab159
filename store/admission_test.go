package store

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/holdfast-jobs/holdfast/runtime/job"
)

// decided decides about jobs, whose ids are their places in the list. used says what is
// used of gates; all have been read as lanes, with room for all.
func decided(rules *job.Rules, used map[job.Gate]int32, heads ...head) *admission {
	a := newAdmission(time.Unix(1000, 0), rules)
	for i := range heads {
		heads[i].id[15] = byte(i)
		if heads[i].lane == "" {
			heads[i].lane = heads[i].gates[0]
		}
		for _, gate := range heads[i].gates {
			if gate.Counts() && a.gates[gate] == nil {
				var stored *slotsRow
				if used[gate] > 0 {
					stored = &slotsRow{Gate: string(gate), Used: used[gate]}
				}
				a.know(gate, stored, nil)
			}
		}
		lane := a.lanes[heads[i].lane]
		if lane == nil {
			lane = &laneState{asked: 100}
			a.lanes[heads[i].lane] = lane
		}
		lane.read++
	}
	a.decide(heads)
	return a
}

func headOf(gates ...job.Gate) head { return head{gates: gates, newcomer: true} }

func places(jobs []head) (all []int) {
	for _, j := range jobs {
		all = append(all, int(j.id[15]))
	}
	return all
}

func TestWhichJobsAreAdmitted(t *testing.T) {
	limits := func(all ...job.Limit) *job.Rules { return job.NewRules(all, nil) }
	pausedA := []job.Pause{{Scope: job.PauseTenant, Name: "a"}}
	changed := func(h head, change func(*head)) head { change(&h); return h }
	for name, tt := range map[string]struct {
		rules    *job.Rules
		used     map[job.Gate]int32
		heads    []head
		admitted []int
		moved    map[int]job.Gate
		canceled []int
		oldest   map[job.Gate]int
	}{
		"no limit": {
			heads: []head{headOf("key:a/k"), headOf("key:a/k")}, admitted: []int{0, 1},
		},
		"a full key": {
			rules: limits(concurrency(job.LimitKey, "*", 2)), used: map[job.Gate]int32{"key:a/k": 1},
			heads: []head{headOf("key:a/k"), headOf("key:a/k"), headOf("key:a/l")}, admitted: []int{0, 2},
		},
		"the most urgent first": {
			rules: limits(concurrency(job.LimitTenant, "*", 1)),
			heads: []head{
				headOf("tenant:a"), changed(headOf("tenant:a"), func(h *head) { h.queue.urgency = -1 }),
			},
			admitted: []int{1},
		},
		"the oldest first": {
			rules: limits(concurrency(job.LimitTenant, "*", 1)),
			heads: []head{
				changed(headOf("tenant:a"), func(h *head) { h.position = time.Unix(2, 0) }), changed(headOf("tenant:a"), func(h *head) { h.position = time.Unix(1, 0) }),
			},
			admitted: []int{1},
		},
		"a job's own limit": {
			used:  map[job.Gate]int32{"key:a/k": 1},
			heads: []head{changed(headOf("key:a/k"), func(h *head) { h.capacity = 1 }), changed(headOf("key:a/k"), func(h *head) { h.capacity = 9 })},
		},
		"the lower of two limits": {
			rules: limits(concurrency(job.LimitKey, "*", 2)), used: map[job.Gate]int32{"key:a/k": 1, "key:a/l": 2},
			heads: []head{
				changed(headOf("key:a/k"), func(h *head) { h.capacity = 1 }), changed(headOf("key:a/l"), func(h *head) { h.capacity = 9 }),
			},
		},
		"a later gate is full": {
			rules: limits(concurrency(job.LimitType, "T", 1)), used: map[job.Gate]int32{"type:T": 1},
			heads: []head{headOf("key:a/k", "type:T")}, moved: map[int]job.Gate{0: "type:T"},
		},
		"an earlier gate is full": {
			rules: limits(concurrency(job.LimitKey, "*", 1), concurrency(job.LimitType, "T", 1)), used: map[job.Gate]int32{"key:a/k": 1},
			heads: []head{
				{gates: []job.Gate{"key:a/k", "type:T"}, lane: "type:T"}, {gates: []job.Gate{"key:a/l", "type:T"}, lane: "type:T"},
			},
			admitted: []int{1}, moved: map[int]job.Gate{0: "key:a/k"},
		},
		"both are full": {
			rules: limits(concurrency(job.LimitKey, "*", 0), concurrency(job.LimitType, "T", 0)),
			heads: []head{{gates: []job.Gate{"key:a/k", "type:T"}, lane: "type:T"}}, moved: map[int]job.Gate{0: "key:a/k"},
		},
		"one that does not wait for the first in its lane": {
			rules: limits(concurrency(job.LimitType, "T", 0)),
			heads: []head{headOf("key:a/k", "type:T"), headOf("key:a/k", "type:U")}, admitted: []int{1}, moved: map[int]job.Gate{0: "type:T"},
		},
		"a paused tenant": {
			rules:    job.NewRules(nil, pausedA),
			heads:    []head{changed(headOf("key:a/k"), func(h *head) { h.tenant = "a" }), changed(headOf("key:b/k"), func(h *head) { h.tenant = "b" })},
			admitted: []int{1}, moved: map[int]job.Gate{0: "paused:a"},
		},
		"a paused type": {
			rules:    job.NewRules(nil, []job.Pause{{Scope: job.PauseType, Name: "T"}}),
			heads:    []head{changed(headOf("key:a/k"), func(h *head) { h.queue.jobType = "T" }), headOf("key:a/k")},
			admitted: []int{1}, moved: map[int]job.Gate{0: "stopped:T"},
		},
		"a resumed type": {
			heads: []head{{lane: "stopped:T", gates: []job.Gate{"key:a/k"}}}, admitted: []int{0},
		},
		"a resumed tenant": {
			heads: []head{headOf("paused:a", "key:a/k")}, admitted: []int{0},
		},
		"a newcomer, and its key is full": {
			rules: limits(concurrency(job.LimitKey, "*", 1)),
			heads: []head{
				changed(headOf("new:a/k", "key:a/k"), func(h *head) { h.onConflict = job.ConflictCancelNewcomer }),
				changed(headOf("new:a/k", "key:a/k"), func(h *head) { h.onConflict = job.ConflictCancelNewcomer }),
			},
			admitted: []int{0}, canceled: []int{1},
		},
		"what the class says about newcomers": {
			rules: limits(altered(concurrency(job.LimitKey, "c", 0), func(l *job.Limit) { l.OnConflict = job.ConflictCancelNewcomer })),
			heads: []head{headOf("new:a/c:1", "key:a/c:1")}, canceled: []int{0},
		},
		"a job that has run before is no newcomer": {
			rules: limits(concurrency(job.LimitKey, "*", 0)),
			heads: []head{changed(headOf("new:a/k", "key:a/k"), func(h *head) { h.onConflict, h.newcomer = job.ConflictCancelNewcomer, false })},
			moved: map[int]job.Gate{0: "key:a/k"},
		},
		"a newcomer waits for its type": {
			rules: limits(concurrency(job.LimitType, "T", 0)),
			heads: []head{changed(headOf("new:a/k", "key:a/k", "type:T"), func(h *head) { h.onConflict = job.ConflictCancelNewcomer })},
			moved: map[int]job.Gate{0: "type:T"},
		},
		"the oldest makes room": {
			rules: limits(concurrency(job.LimitKey, "*", 1)), used: map[job.Gate]int32{"key:a/k": 1},
			heads: []head{changed(headOf("new:a/k", "key:a/k"), func(h *head) { h.onConflict = job.ConflictCancelOldest })},
			moved: map[int]job.Gate{0: "key:a/k"}, oldest: map[job.Gate]int{"new:a/k": 1},
		},
	} {
		t.Run(name, func(t *testing.T) {
			for i := range tt.heads {
				tt.heads[i].position = timeOr(tt.heads[i].position, time.Unix(int64(i), 0))
			}
			a := decided(tt.rules, tt.used, tt.heads...)
			require.ElementsMatch(t, tt.admitted, places(a.admitted))
			moved := make(map[int]job.Gate)
			for _, j := range a.moved {
				moved[int(j.id[15])] = j.lane
			}
			if tt.moved == nil {
				tt.moved = map[int]job.Gate{}
			}
			require.Equal(t, tt.moved, moved)
			var canceled []int
			for _, c := range a.canceled {
				canceled = append(canceled, int(c.id[15]))
			}
			require.Equal(t, tt.canceled, canceled)
			if tt.oldest == nil {
				tt.oldest = map[job.Gate]int{}
			}
			require.Equal(t, tt.oldest, a.oldest)
		})
	}
}

func altered(l job.Limit, change func(*job.Limit)) job.Limit { change(&l); return l }

func timeOr(at, otherwise time.Time) time.Time {
	if at.IsZero() {
		return otherwise
	}
	return at
}

// A rate that is never below what a token bucket of all starts would allow, and never
// above.
func TestStartsAreChargedAtTheirTime(t *testing.T) {
	now := time.Unix(1000, 0)
	rate := &job.Rate{Count: 10, Period: 10 * time.Second, Burst: 4}
	rules := job.NewRules([]job.Limit{{Scope: job.LimitType, Name: "T", Rate: rate}}, nil)
	ago := func(seconds float64) *time.Time {
		at := now.Add(-time.Duration(seconds * float64(time.Second)))
		return &at
	}
	stored := func(tokens, seconds float64) *slotsRow {
		return &slotsRow{Gate: "type:T", Used: 4, Tokens: &tokens, TokensAt: ago(seconds)}
	}
	for name, tt := range map[string]struct {
		stored      *slotsRow
		starts      []startRow
		tokens      float64
		outstanding int
		charged     int
	}{
		"never used":                {tokens: 4},
		"three seconds":             {stored: stored(0.5, 3), tokens: 3.5},
		"not beyond the burst":      {stored: stored(0.5, 30), tokens: 4},
		"two wait":                  {stored: stored(3, 0), starts: []startRow{{Waits: true}, {Waits: true}}, tokens: 3, outstanding: 2},
		"one started long ago":      {stored: stored(4, 30), starts: []startRow{{StartedAt: ago(20)}}, tokens: 4, charged: 1},
		"one started a second ago":  {stored: stored(4, 30), starts: []startRow{{StartedAt: ago(1)}}, tokens: 4, charged: 1},
		"all started a second ago":  {stored: stored(4, 30), starts: slices.Repeat([]startRow{{StartedAt: ago(1)}}, 4), tokens: 1, charged: 4},
		"one before it was counted": {stored: stored(2, 1), starts: []startRow{{StartedAt: ago(2)}}, tokens: 2, charged: 1},
		"one was canceled":          {stored: stored(2, 0), starts: []startRow{{}}, tokens: 2, charged: 1},
	} {
		t.Run(name, func(t *testing.T) {
			a := newAdmission(now, rules)
			g := a.know("type:T", tt.stored, tt.starts)
			require.InDelta(t, tt.tokens, g.tokens, 1e-9)
			require.Equal(t, tt.outstanding, g.outstanding)
			require.Len(t, g.charged, tt.charged)
		})
	}
}

func TestALaneIsLookedAtAgainWhileItHasRoomAndJobs(t *testing.T) {
	gates := []job.Gate{"key:a/k", "type:T"}
	for name, tt := range map[string]struct {
		limits []job.Limit
		asked  int
		again  bool
		later  bool
	}{
		"there were fewer":   {asked: 4},
		"there may be more":  {asked: 3, again: true},
		"it is full":         {asked: 3, limits: []job.Limit{concurrency(job.LimitKey, "*", 3)}},
		"its own gate stops": {asked: 3, limits: []job.Limit{concurrency(job.LimitKey, "*", 2)}},
		"all wait elsewhere": {asked: 3, limits: []job.Limit{concurrency(job.LimitType, "T", 0)}, later: true},
		"some went on":       {asked: 3, limits: []job.Limit{concurrency(job.LimitType, "T", 1)}, again: true},
	} {
		t.Run(name, func(t *testing.T) {
			a := newAdmission(time.Unix(1000, 0), job.NewRules(tt.limits, nil))
			for _, gate := range gates {
				a.know(gate, nil, nil)
			}
			a.lanes[gates[0]] = &laneState{asked: tt.asked, read: 3}
			heads := make([]head, 3)
			for i := range heads {
				heads[i] = head{lane: gates[0], gates: gates, position: time.Unix(int64(i), 0)}
			}
			a.decide(heads)
			require.Equal(t, tt.again, slices.Contains(a.rewake, gates[0]), fmt.Sprint(a.rewake))
			require.Equal(t, tt.later, !a.gates[gates[0]].wakeAt.IsZero())
		})
	}
}

// A round waits for locks after it has read its time, and jobs start meanwhile.
func TestTimeIsNotCreditedTwiceForAStartAfterTheRoundBegan(t *testing.T) {
	now := time.Unix(1000, 0)
	g := &gateState{gate: "type:T", limit: job.Limit{Rate: &job.Rate{Count: 10, Period: time.Second, Burst: 10}}}
	started := now.Add(2 * time.Second)
	none := 0.0
	g.stored = &slotsRow{Tokens: &none, TokensAt: &now}
	g.charge(now, []startRow{{StartedAt: &started}})
	require.InDelta(t, 9, g.tokens, 1e-9, "full after two seconds, less the start")
	stored := g.next()
	later := &gateState{gate: g.gate, limit: g.limit, stored: &stored}
	later.charge(started, nil)
	require.InDelta(t, 9, later.tokens, 1e-9)
}

// Nobody of a paused type has a turn meanwhile, so those that were given before stay right.
func TestAPauseOfATypeKeepsTheTurnsOfItsJobs(t *testing.T) {
	a := decided(nil, nil, head{gates: []job.Gate{"fair:a/k"}, lane: "stopped:T", turn: true, position: time.Unix(5, 0)})
	require.Len(t, a.admitted, 1)
	require.Equal(t, time.Unix(5, 0), a.admitted[0].position)
}
