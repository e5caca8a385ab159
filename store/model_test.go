package store

import (
	"cmp"
	"context"
	"encoding/binary"
	"maps"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/holdfast-jobs/holdfast/runtime/job"
	"github.com/holdfast-jobs/holdfast/test/pgtest"
)

// The model is the requirements' state machine in memory: jobs, their owners, and
// every lease that ever existed. Two workers, which keep their stale leases, and clients
// and operators run random verbs on the store and on the model. Answers are lost after
// their statements are committed, and the database's clock is set forward and back. After
// each step, the test compares every row with the model's.
//
// The transitions that no sequence has made are made at the end, so that all were seen,
// whatever was drawn.
func TestTheStoreBehavesLikeItsModel(t *testing.T) {
	all := newCoverage()
	w := newModelWorld(t, all)
	rapid.Check(t, func(rt *rapid.T) {
		all.begun()
		m := w.model(rt)
		rt.Repeat(m.actions())
		m.end()
	})
	all.complete(t)
	t.Log(all)
	all.requireAll(t)
}

// modelWorld is a database in which sequences are run one after another.
type modelWorld struct {
	test  *testing.T
	near  *Store
	far   *Store // the same database, through the proxy
	proxy *pgtest.Proxy
	seen  *coverage
	runs  int
}

func newModelWorld(t *testing.T, seen *coverage) *modelWorld {
	t.Helper()
	near := frozen(t)
	proxy := pgtest.Between(t, urlOf(near))
	return &modelWorld{test: t, near: near, proxy: proxy, far: openAt(t, onClock(t, proxy.URL)), seen: seen}
}

// model begins a sequence: in an empty database, in which two workers are alive.
func (w *modelWorld) model(t require.TestingT) *model {
	m := &model{
		alive: make(map[string]int), stopped: make(map[string]bool),
		t: t, world: w, ctx: w.test.Context(), byID: make(map[job.ID]*modelJob),
		ended: map[string]map[job.State]int64{worker: {}, other: {}}, happened: make(map[string]int64),
	}
	m.reset()
	for _, name := range m.workers() {
		m.alive[name] = 1000 * 3600
		require.NoError(t, w.near.RegisterWorker(m.ctx, job.Worker{ID: name}, 1000*time.Hour))
	}
	return m
}

type model struct {
	t     require.TestingT
	world *modelWorld
	ctx   context.Context

	now    int         // seconds since the epoch of the frozen clock
	jobs   []*modelJob // in the order of their ids
	gone   []*modelJob // were deleted
	byID   map[job.ID]*modelJob
	leases []*modelLease // every one that ever existed
	ids    uint64        // given so far
	// alive is until when each worker counts as alive, and stopped says that it has signed off.
	alive   map[string]int
	stopped map[string]bool
	notes   int // written so far, by either worker

	// What has happened, and which jobs each worker has ended.
	happened map[string]int64
	ended    map[string]map[job.State]int64
}

func (m *model) actions() map[string]func(*rapid.T) {
	return map[string]func(*rapid.T){
		"":            func(*rapid.T) { m.compare() },
		"submit":      m.submit,
		"submit more": m.submit,
		"submit some": m.submit, // so that there are jobs
		"submit all":  m.submitAll,
		"claim":       m.claim,
		"claim more":  m.claim, // so that many jobs run
		"settle":      m.settle,
		"settle more": m.settle,
		"follow up":   m.followUp,
		"report":      m.report,
		"renew":       m.renew,
		"renew more":  m.renew, // so that leases are kept
		"reap":        m.reap,
		"promote":     m.promote,
		"expire":      m.expire,
		"admit":       m.admit,
		"park":        m.park,
		"step":        m.step,
		"cancel":      m.cancel,
		"hold":        m.hold,
		"release":     m.release,
		"edit":        m.edit,
		"requeue":     m.requeue,
		"redrive":     m.redrive,
		"erase":       m.erase,
		"operate":     m.operate,
		"sweep":       m.sweep,
		"discharge":   m.discharge,
		"unanswered":  m.releaseUnanswered,
		"figures":     m.figures,
	}
}

// end ends a sequence: every lease that is not valid any more is used once more, with every
// verb.
func (m *model) end() {
	m.replay()
	m.compare()
}

type modelJob struct {
	id, parent      job.ID
	key, payload    string
	priority        int16
	state           job.State
	gates           []job.Gate
	tags            string
	attempt, most   int
	interruptions   int
	crashes         int
	fence           int64
	worker          string
	cancelRequested bool
	lease           *modelLease // the valid one, while running
	succeededUnder  job.LeaseID
	attempts        []modelAttempt

	created, updated, runAt    int // never for a held job
	started, finished, expires int
	erased                     int
	expiry                     int // the entry in the list of jobs that expire

	// Where it waits, while it is queued.
	parked   bool
	admitted int

	error, progress, checkpoint, result string
	logs                                map[int64]string // by fence
}

// modelAttempt is one that did not succeed.
type modelAttempt struct {
	fence               int64
	number              int
	lease               job.LeaseID
	worker              string
	outcome             job.OutcomeKind
	error               string
	claimed, ended, due int
}

type modelLease struct {
	job.Lease
	of               *modelJob
	worker           string
	claimed, expires int
	kept             bool // it lasts as long as its worker, whatever expires says
	settled          bool // its settlement was written
	// What the claim returned about the job.
	attempt, interruptions, crashes int
}

// Times that are no moments.
const (
	unset = -never
	never = 1 << 40
)

func (l *modelLease) valid() bool { return l.of.lease == l }

// expiry is when the lease expires if it is not renewed.
func (m *model) expiry(l *modelLease) int {
	if l.kept {
		return m.alive[l.worker]
	}
	return l.expires
}

func (m *model) expired(l *modelLease) bool { return l.valid() && m.expiry(l) <= m.now }

// end ends the lease by another way than its expiry, if it has not expired yet.
func (l *modelLease) end(now int) {
	l.expires = min(l.expires, now)
	if l.kept {
		l.expires = now
	}
	l.kept = false
}

func (m *model) workers() []string { return []string{worker, other} }

// id is the next one: they are in the order of their creation, and older than the clock ever is.
func (m *model) id() (id job.ID) {
	m.ids++
	binary.BigEndian.PutUint64(id[:8], uint64(epoch.Add(-24*time.Hour).UnixMilli())<<16|0x7000)
	binary.BigEndian.PutUint64(id[8:], m.ids|1<<63)
	return id
}

// become moves a job to another state, which is what every verb does in the end.
func (m *model) become(j *modelJob, to job.State) {
	m.world.seen.edge(j.state, to)
	require.True(m.t, j.state == to || j.state.CanBecome(to), "the model moves a job from %s to %s", j.state, to)
	j.state = to
}

// queue is what becomes of a job that is due: it is parked if it has gates.
func (m *model) queue(j *modelJob) {
	m.become(j, job.Queued)
	j.parked, j.admitted = len(j.gates) > 0, unset
}

// finish ends a job.
func (m *model) finish(j *modelJob, state job.State) {
	m.become(j, state)
	j.finished, j.updated, j.lease, j.cancelRequested = m.now, m.now, nil, false
}

func (m *model) in(states ...job.State) []*modelJob {
	var found []*modelJob
	for _, j := range m.jobs {
		if slices.Contains(states, j.state) {
			found = append(found, j)
		}
	}
	return found
}

func (m *model) someJob(t *rapid.T) *modelJob {
	if len(m.jobs) == 0 {
		t.Skip("no job yet")
	}
	return m.jobs[rapid.IntRange(0, len(m.jobs)-1).Draw(t, "job")]
}

// someLeases draws up to four different leases, including stale ones.
func (m *model) someLeases(t *rapid.T) []*modelLease {
	if len(m.leases) == 0 {
		t.Skip("no lease yet")
	}
	places := rapid.SliceOfNDistinct(rapid.IntRange(0, len(m.leases)-1), 1, min(4, len(m.leases)), rapid.ID[int]).Draw(t, "leases")
	chosen := make([]*modelLease, len(places))
	for i, place := range places {
		chosen[i] = m.leases[place]
	}
	return chosen
}

// urgent are the ready jobs in the order in which they are claimed.
func (m *model) urgent() []*modelJob {
	ready := slices.DeleteFunc(m.in(job.Queued), func(j *modelJob) bool { return j.parked })
	slices.SortStableFunc(ready, func(a, b *modelJob) int {
		return cmp.Or(cmp.Compare(b.priority, a.priority), cmp.Compare(a.runAt, b.runAt), slices.Compare(a.id[:], b.id[:]))
	})
	return ready
}

func (m *model) own(j *modelJob, lease job.Lease, name string, claimed, expires int) {
	for _, l := range m.leases {
		require.NotEqual(m.t, l.ID, lease.ID, "a lease id issued twice")
	}
	j.lease = &modelLease{
		Lease: lease, of: j, worker: name, claimed: claimed, expires: expires,
		attempt: j.attempt + 1, interruptions: j.interruptions, crashes: j.crashes,
	}
	m.leases = append(m.leases, j.lease)
}

// byState counts the jobs, also those that were deleted.
func (m *model) byState() map[job.State]int64 {
	states := make(map[job.State]int64)
	for _, state := range job.States() {
		states[state] = 0
	}
	for _, j := range m.jobs {
		states[j.state]++
	}
	// Dead letters are counted while they are there, the other ends for ever.
	for _, j := range m.gone {
		if j.state != job.Dead {
			states[j.state]++
		}
	}
	return states
}

// byWorker counts what each worker runs and has ended.
func (m *model) byWorker() map[string]map[job.State]int64 {
	found := make(map[string]map[job.State]int64)
	for name, ended := range m.ended {
		found[name] = maps.Clone(ended)
	}
	for _, j := range m.in(job.Running) {
		if found[j.lease.worker] != nil {
			found[j.lease.worker][job.Running]++
		}
	}
	maps.DeleteFunc(found, func(_ string, counts map[job.State]int64) bool { return len(counts) == 0 })
	return found
}
