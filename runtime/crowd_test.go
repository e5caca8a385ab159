package runtime_test

import (
	"context"
	"encoding/json"
	"errors"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/holdfast-jobs/holdfast/runtime"
	"github.com/holdfast-jobs/holdfast/runtime/job"
)

// An orchestrator without work asks the database less, the more others can do the same: all
// together poll as often as one, beyond what each must ask for itself.
func TestAnIdleOrchestratorAsksLessTheMoreThereAre(t *testing.T) {
	t.Parallel()
	const minutes = 20
	perMinute := func(live int, hears bool) (counts map[string]float64, all float64) {
		s := newIdleStore(live, hears)
		synctest.Test(t, func(t *testing.T) {
			launch(t, s, idlePlugins{}, polling(time.Second), leasing(30*time.Second))
			time.Sleep(time.Minute) // until it knows how many there are
			s.forget()
			time.Sleep(minutes * time.Minute)
			counts, all = s.counted(minutes)
		})
		return counts, all
	}
	one, alone := perMinute(1, true)
	two, both := perMinute(2, true)
	ten, _ := perMinute(10, true)
	fifty, among := perMinute(50, true)
	deaf, unheard := perMinute(50, false)
	t.Logf("calls a minute, of one: %.0f, of two: %.0f, of fifty: %.0f %v", alone, both, among, fifty)

	for _, verb := range []string{"claim", "outlook", "rules"} {
		require.InDelta(t, one[verb], two[verb], one[verb]/10, "%s: two take no turns", verb)
		require.InDelta(t, one[verb], deaf[verb], one[verb]/10, "%s: without hints nobody waits for others", verb)
		require.GreaterOrEqual(t, two[verb], 50.0, verb)
		require.InDelta(t, one[verb], 10*ten[verb], one[verb]/2, "%s: ten ask as often as one", verb)
		require.InDelta(t, one[verb], 50*fifty[verb], one[verb]/2, "%s: fifty ask as often as one", verb)
	}
	require.InDelta(t, alone, unheard, alone/10)
	require.InDelta(t, 1, two["forgetLogins"], 0.2, "records are deleted every minute")
	require.Less(t, fifty["forgetLogins"], 0.4, "a crowd takes turns at deleting records")
	for _, counts := range []map[string]float64{two, fifty} {
		require.InDelta(t, 4.5, counts["renew"], 0.5, "each says for itself that it is alive, twice a lease and a bit")
		require.Less(t, counts["catalog"], 0.2, "a look says that no job type was declared")
		for _, verb := range []string{"admit", "promote", "nextExpiry", "nextTick", "operateNext"} {
			require.Less(t, counts[verb], 0.5, "%s: a look says that there is nothing", verb)
		}
	}
	require.InDelta(t, 1, two["reap"], 0.2, "a look says that there is nothing, too")
	require.InDelta(t, 12, two["surroundings"], 1, "each looks after the others, every sixth of a lease")
	require.InDelta(t, 3, fifty["surroundings"], 0.5, "in a crowd four times less often")
	require.Less(t, among, both/12, "an orchestrator among fifty")
}

// Leases run out whether or not the others can be seen.
func TestAReaperThatIsToldNothingReapsAnyway(t *testing.T) {
	t.Parallel()
	s := newIdleStore(1, true)
	s.unseen = errors.New("the statement takes too long")
	synctest.Test(t, func(t *testing.T) {
		launch(t, s, idlePlugins{}, polling(time.Second), leasing(30*time.Second))
		time.Sleep(time.Minute)
		counts, _ := s.counted(1)
		require.InDelta(t, 12, counts["surroundings"], 2)
		require.InDelta(t, 12, counts["reap"], 2, "every sixth of a lease")
	})
}

// Only those that maintain see what is to be reaped.
func TestTwoThatMaintainLookAsOftenAsOneAmongManyWorkers(t *testing.T) {
	t.Parallel()
	for maintainers, want := range map[int]float64{1: 12, 2: 12, 4: 6, 50: 3} {
		s := newIdleStore(50, true)
		s.maintainers = maintainers
		synctest.Test(t, func(t *testing.T) {
			launch(t, s, idlePlugins{}, polling(time.Second), leasing(30*time.Second))
			time.Sleep(time.Minute)
			s.forget()
			time.Sleep(10 * time.Minute)
			counts, _ := s.counted(10)
			require.InDelta(t, want, counts["surroundings"], 1, maintainers)
		})
	}
}

func TestJobTypesThatNobodyAnnouncedAreReadWithinALook(t *testing.T) {
	t.Parallel()
	s := newIdleStore(1, true)
	synctest.Test(t, func(t *testing.T) {
		launch(t, s, idlePlugins{}, polling(time.Second), leasing(30*time.Second))
		time.Sleep(time.Minute)
		s.forget()
		s.declare()
		time.Sleep(6 * time.Second)
		counts, _ := s.counted(1)
		require.Equal(t, 1.0, counts["catalog"])
		time.Sleep(time.Minute)
		counts, _ = s.counted(1)
		require.Equal(t, 1.0, counts["catalog"], "once")
	})
}

// idleStore is one in which there is nothing to do. It counts what it is asked.
type idleStore struct {
	runtime.Store
	live  int
	hears bool
	// maintainers is how many of them maintain; 0 for all.
	maintainers int
	// unseen is why the others cannot be seen.
	unseen error

	mu      sync.Mutex
	types   int64 // the version of the job types
	calls   map[string]int
	outlook job.Outlook
	blind   error // of looks
}

// newIdleStore returns one that counts so many live processes, and whose hints are heard or not.
func newIdleStore(live int, hears bool) *idleStore {
	return &idleStore{live: live, hears: hears, calls: make(map[string]int)}
}

// see sets what looks return from now on.
func (s *idleStore) see(outlook job.Outlook, err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.outlook, s.blind = outlook, err
}

// declare is as if another process had declared a job type.
func (s *idleStore) declare() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.types++
}

func (s *idleStore) count(verb string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.calls[verb]++
}

func (s *idleStore) forget() {
	s.mu.Lock()
	defer s.mu.Unlock()
	clear(s.calls)
}

func (s *idleStore) counted(minutes float64) (perMinute map[string]float64, all float64) {
	s.mu.Lock()
	defer s.mu.Unlock()
	perMinute = make(map[string]float64)
	for verb, n := range s.calls {
		perMinute[verb] = float64(n) / minutes
		all += perMinute[verb]
	}
	return perMinute, all
}

func (s *idleStore) Surroundings(context.Context, string, string) (job.Surroundings, error) {
	s.count("surroundings")
	if s.unseen != nil {
		return job.Surroundings{}, s.unseen
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	seen := job.Surroundings{TypesVersion: s.types, Live: []job.Peers{{Processes: s.live, Roles: job.AllRoles(), Types: []string{echo}}}}
	if s.maintainers > 0 {
		seen.Live = []job.Peers{{Processes: s.live - s.maintainers, Roles: job.Roles{job.RoleWorker}}, {Processes: s.maintainers, Roles: job.AllRoles()}}
	}
	return seen, nil
}

func (s *idleStore) Listen(ctx context.Context, ready func(), _ func(job.Notice)) error {
	if s.hears {
		ready()
	}
	<-ctx.Done()
	return ctx.Err()
}

func (s *idleStore) Claim(context.Context, string, []string, int, time.Duration) ([]job.Claimed, error) {
	s.count("claim")
	return nil, nil
}

func (s *idleStore) Renew(context.Context, string, []job.Lease, []job.LeaseID, time.Duration) ([]job.Renewed, error) {
	s.count("renew")
	return nil, nil
}

func (s *idleStore) Rules(context.Context) (*job.Rules, bool, error) {
	s.count("rules")
	return job.NewRules(nil, nil), false, nil
}

func (s *idleStore) Admit(context.Context, *job.Rules) (done job.Admission, err error) {
	s.count("admit")
	return done, nil
}

func (s *idleStore) Follow(context.Context, job.FollowPlan) (done job.Following, err error) {
	s.count("follow")
	return done, nil
}

func (s *idleStore) Outlook(context.Context, time.Duration) (job.Outlook, error) {
	s.count("outlook")
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.outlook, s.blind
}

func (s *idleStore) Promote(context.Context, int) (done job.Promoted, err error) {
	s.count("promote")
	return done, nil
}

func (s *idleStore) NextDue(context.Context) (time.Duration, bool, error) {
	s.count("nextDue")
	return 0, false, nil
}

func (s *idleStore) NextExpiry(context.Context) (time.Duration, bool, error) {
	s.count("nextExpiry")
	return 0, false, nil
}

func (s *idleStore) NextTick(context.Context) (time.Duration, bool, error) {
	s.count("nextTick")
	return 0, false, nil
}

func (s *idleStore) OperateNext(context.Context) (done job.PortionDone, found bool, err error) {
	s.count("operateNext")
	return done, false, nil
}

func (s *idleStore) OperationDue(context.Context) (time.Duration, bool, error) {
	s.count("operationDue")
	return 0, false, nil
}

func (s *idleStore) EraseNext(context.Context, int) (map[job.State]int64, bool, error) {
	s.count("eraseNext")
	return nil, false, nil
}

func (s *idleStore) Reap(context.Context, int, time.Duration) ([]job.Expired, error) {
	s.count("reap")
	return nil, nil
}

func (s *idleStore) RollUpTallies(context.Context, int) (int, error) {
	s.count("rollUpTallies")
	return 0, nil
}

func (s *idleStore) TidyUnique(context.Context, []byte, int) ([]byte, int, error) {
	s.count("tidyUnique")
	return nil, 0, nil
}

func (s *idleStore) Fingerprint(context.Context, int) (int, error) {
	s.count("fingerprint")
	return 0, nil
}

func (s *idleStore) Unserved(context.Context, time.Duration) ([]job.Unserved, error) {
	s.count("unserved")
	return nil, nil
}

func (s *idleStore) Catalog(context.Context) ([]job.TypeSpec, error) {
	s.count("catalog")
	return nil, nil
}

func (s *idleStore) Sweep(context.Context, job.Walk, job.RetentionPolicies, string, int, bool) (done job.Swept, err error) {
	s.count("sweep")
	return done, nil
}

func (s *idleStore) Redeliver(context.Context, job.DeliveryPlan) (done job.Delivered, err error) {
	s.count("redeliver")
	return done, nil
}

func (s *idleStore) UnfinishedWorkflows(context.Context, job.ID, int, bool) ([]job.ID, error) {
	return nil, nil
}

func (s *idleStore) TidyWorkflows(context.Context, job.ID, *time.Duration) (next job.ID, more bool, err error) {
	return next, false, nil
}

func (s *idleStore) ForgetEvents(context.Context, job.EventLog, int) (int, error) { return 0, nil }

func (s *idleStore) ForgetWalk(context.Context, job.Walk) error { return nil }

func (s *idleStore) ForgetLogins(context.Context) (int, error) {
	s.count("forgetLogins")
	return 0, nil
}

func (s *idleStore) ForgetActs(context.Context, time.Duration, int) (int, error) { return 0, nil }

func (s *idleStore) ForgetOperations(context.Context, time.Duration) error { return nil }

func (s *idleStore) AgeTallies(context.Context) error { return nil }

func (s *idleStore) WakeLanes(context.Context) (int, error) { return 0, nil }

func (s *idleStore) Recount(context.Context, *job.Rules) (int, error) { return 0, nil }

func (s *idleStore) Send(context.Context, job.Notice) error { return nil }

func (s *idleStore) RegisterWorker(context.Context, job.Worker, time.Duration) error { return nil }

func (s *idleStore) DeclareTypes(context.Context, []job.TypeSpec) error { return nil }

func (s *idleStore) DescribeWorker(context.Context, string, json.RawMessage) error { return nil }

func (s *idleStore) ExpireWorkers(context.Context, []string) (int, error) { return 0, nil }

func (s *idleStore) ReleaseUnanswered(context.Context, string, []job.LeaseID) (int, error) {
	return 0, nil
}

func (s *idleStore) RecordLatencies(context.Context, time.Duration, []job.TypeLatencies) (time.Duration, error) {
	return 0, nil
}

// idlePlugins is one plugin, which serves one type and has room.
type idlePlugins struct{}

func (idlePlugins) Pools() []job.Pool {
	return []job.Pool{{Plugin: "p", Version: "1", Types: []string{echo}, Free: 10, Slots: 10}}
}
func (idlePlugins) Types() []job.TypeSpec    { return []job.TypeSpec{{Type: echo, Plugin: "p"}} }
func (idlePlugins) Changed() <-chan struct{} { return nil }
func (idlePlugins) Start(string, job.Assignment, job.Reporter) (job.Run, error) {
	return nil, job.ErrUnavailable
}
