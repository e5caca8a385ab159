package load

import (
	"fmt"
	"slices"
	"time"

	"github.com/holdfast-jobs/holdfast/test/chaos/history"
)

// betweenCrashes is the least time between two jobs that crash. A plugin that crashes again
// and again is started less and less often, however fast the machine is: more of these jobs
// would pile up.
const betweenCrashes = 20 * time.Second

// shares are how often each type is submitted, in a thousand; what is left goes to
// CHAOS_GOOD.
var shares = []struct {
	jobType string
	share   int
}{{"CHAOS_SLOW", 100}, {"CHAOS_PYTHON", 80}, {"CHAOS_NODE", 80}, {"CHAOS_CRASH", 10}, {"CHAOS_HOSTILE", 5}}

// ownLimits are the attempts that submissions ask for; 0 for those of the type.
var ownLimits = []int{0, MaxAttempts - 2, MaxAttempts, MaxAttempts + 1}

// items makes new submissions.
func (p *person) items(n int, keyed bool) []item {
	items := make([]item, n)
	tenant := []string{"default", "default", "acme"}[p.random.IntN(3)]
	for i := range items {
		p.marks++
		mark := fmt.Sprintf("%s-%d", p.name, p.marks)
		jobType := p.jobType()
		limit := ownLimits[p.random.IntN(len(ownLimits))]
		sent := submission{
			JobType: jobType, Payload: p.payload(jobType), MaxAttempts: limit, Tenant: tenant, Tags: []string{history.MarkTag(mark)},
		}
		sent.Payload.Mark = mark
		if keyed {
			sent.IdempotencyKey = "key-" + mark
		}
		recorded := history.Submission{Mark: mark, Key: sent.IdempotencyKey, JobType: jobType, MaxAttempts: limit}
		switch p.random.IntN(20) {
		case 0:
			recorded.Delay = time.Duration(1+p.random.IntN(5000)) * time.Millisecond
			sent.Delay = recorded.Delay.String()
		case 1:
			recorded.TTL = time.Duration(200+p.random.IntN(3000)) * time.Millisecond
			sent.TTL = recorded.TTL.String()
		}
		items[i] = item{sent: sent, recorded: recorded}
	}
	return items
}

// graphs are the shapes of workflows: for each job, the places of those that it comes after.
var graphs = [][][]int{
	{nil, {0}, {1}},
	{nil, {0}, {0}, {1, 2}},
	{nil, nil, nil, {0, 1, 2}},
}

// workflow makes a new workflow. Jobs after a dead one are canceled, or else they would wait
// for an operator.
func (p *person) workflow() (tenant, key string, items []item) {
	graph := graphs[p.random.IntN(len(graphs))]
	items = p.items(len(graph), false)
	tenant = items[0].sent.Tenant
	for i, before := range graph {
		one := &items[i]
		one.sent.Tenant, one.sent.Name = "", one.recorded.Mark
		one.sent.TTL, one.recorded.TTL = "", 0
		if one.sent.OnDeath = "cancel"; p.random.IntN(2) == 0 {
			one.sent.OnDeath = "skip"
		}
		for _, at := range before {
			one.recorded.After = append(one.recorded.After, items[at].recorded.Mark)
		}
		one.sent.After = one.recorded.After
	}
	return tenant, "workflow-" + items[0].recorded.Mark, items
}

func (p *person) jobType() string {
	n := p.random.IntN(1000)
	for _, s := range shares {
		if n -= s.share; n >= 0 {
			continue
		}
		if slices.Contains(p.load.cfg.Types, s.jobType) && (s.jobType != "CHAOS_CRASH" || p.load.mayCrash()) {
			return s.jobType
		}
		break
	}
	return "CHAOS_GOOD"
}

func (p *person) payload(jobType string) payload {
	switch jobType {
	case "CHAOS_SLOW":
		slow := payload{Millis: 500 + p.random.IntN(1+p.random.IntN(8000)), Plan: p.plan()}
		if p.random.IntN(6) == 0 { // it runs again by the time that a holder wakes who has lost it
			slow.Millis = 8000 + p.random.IntN(4000)
		}
		if p.load.cfg.Brief && slices.Equal(slow.Plan, []string{string(history.Fails)}) {
			slow.Plan = []string{string(history.Permanent)}
		}
		return slow
	case "CHAOS_CRASH":
		return payload{Millis: p.random.IntN(300), Plan: [][]string{{"crash", "succeeds"}, {"fails", "crash", "succeeds"}, {"crash"}}[p.random.IntN(3)]}
	case "CHAOS_HOSTILE": // longer than its timeout at times
		return payload{Millis: 200 + p.random.IntN(8000), Plan: []string{"succeeds"}}
	}
	work := payload{Millis: p.random.IntN(300), Plan: p.plan()}
	if jobType == "CHAOS_GOOD" && p.random.IntN(25) == 0 {
		work.FollowUps = 1 + p.random.IntN(3)
	}
	return work
}

func (p *person) plan() []string {
	switch n := p.random.IntN(100); {
	case n < 14:
		return []string{string(history.Fails), string(history.Succeeds)}
	case n < 18:
		return []string{string(history.Permanent)}
	case n < 20:
		return []string{string(history.Fails)}
	case n < 23:
		return []string{string(history.Snoozes), string(history.Succeeds)}
	}
	return []string{string(history.Succeeds)}
}
