package store

import (
	"context"
	"fmt"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/holdfast-jobs/holdfast/runtime/job"
)

// coverage is what the sequences have done so far.
type coverage struct {
	mu sync.Mutex
	// edges are the transitions, moves the verbs of clients by the state of the job, stales the
	// uses of leases that were not valid any more, verbs all uses, and losses those whose answer
	// was lost.
	edges                 map[[2]job.State]int
	moves                 map[string]map[job.State]int
	stales, verbs, losses map[string]int
	sequences, stepsBack  int // stepsBack are those of the clock
	direct                int // what was not drawn, but done at the end
}

func newCoverage() *coverage {
	return &coverage{
		edges: make(map[[2]job.State]int), moves: make(map[string]map[job.State]int),
		stales: make(map[string]int), verbs: make(map[string]int), losses: make(map[string]int),
	}
}

// enough is how many sequences leave nothing out that is drawn now and then. In 5,000, the
// answer to each verb is lost some twenty times or more, and each use of a stale lease comes
// more than a thousand times.
const enough = 5000

// requireAll fails if many sequences never lost the answer to one of the verbs, never used a
// stale lease in one of the ways, or never stepped the clock back.
func (c *coverage) requireAll(t *testing.T) {
	t.Helper()
	if c.sequences < enough {
		return
	}
	for verb := range c.verbs {
		require.Positive(t, c.losses[verb], "the answer to %s was never lost", verb)
	}
	for _, end := range []job.State{job.Queued, job.Retry, job.Dead, job.Succeeded, job.Canceled} {
		require.Positive(t, c.stales[string(end)], "no stale lease was to make a job %s", end)
	}
	require.Positive(t, c.stales["renew"])
	require.Positive(t, c.stales["keep"], "no worker came back to leases that it had kept")
	require.Positive(t, c.stales["report"])
	require.Positive(t, c.stepsBack, "the clock was never stepped back")
}

func (c *coverage) edge(from, to job.State) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.edges[[2]job.State{from, to}]++
}

func (c *coverage) asked(verb string, state job.State) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.moves[verb] == nil {
		c.moves[verb] = make(map[job.State]int)
	}
	c.moves[verb][state]++
}

func (c *coverage) stale(verb string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.stales[verb]++
}

func (c *coverage) tried(verb string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.verbs[verb]++
}

func (c *coverage) begun() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.sequences++
}

func (c *coverage) steppedBack() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.stepsBack++
}

func (c *coverage) lost(verb string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.losses[verb]++
}

func (c *coverage) String() string {
	return fmt.Sprintf("%d sequences; transitions %v; verbs by state %v; stale leases %v; lost answers %v; steps of the clock back %d; done at the end %d",
		c.sequences, c.edges, c.moves, c.stales, c.losses, c.stepsBack, c.direct)
}

// notByVerbs is the only transition that no verb makes: the database allows it to an operator.
var notByVerbs = [2]job.State{job.Retry, job.Dead}

// reach brings a job into the state. Only for a running one, the claim is set.
func reach(t *testing.T, s *Store, state job.State) (c job.Claimed) {
	t.Helper()
	after := map[job.State]job.OutcomeKind{
		job.Retry: job.Failure, job.Succeeded: job.Success, job.Dead: job.PermanentFailure, job.Canceled: job.CancelConfirmed,
	}
	switch state {
	case job.Created:
		c.JobID = given(t, s, func(j *job.Submission) { j.Hold = true })
	case job.Queued:
		c.JobID = given(t, s)
	case job.Running:
		c = running(t, s)
	case job.Retry, job.Succeeded, job.Dead, job.Canceled:
		c = running(t, s)
		settled(t, s, c, after[state])
	}
	return c
}

// postpone edits a job so that it is due in an hour.
func postpone(t *testing.T, s *Store, id job.ID) error {
	t.Helper()
	_, _, err := s.Edit(t.Context(), id, job.Edit{Delay: new(time.Hour)})
	return err
}

// ways are what makes each transition, of a job that reach has brought there.
var ways = map[[2]job.State]func(*testing.T, *Store, job.Claimed) error{
	{job.Created, job.Queued}:   moved((*Store).Release),
	{job.Created, job.Canceled}: moved((*Store).Cancel),
	{job.Queued, job.Created}:   func(t *testing.T, s *Store, c job.Claimed) error { t.Helper(); return postpone(t, s, c.JobID) },
	{job.Queued, job.Running}: func(t *testing.T, s *Store, _ job.Claimed) error {
		t.Helper()
		s.marks = newLowWaterMarks()
		claim(t, s, 1)
		return nil
	},
	{job.Queued, job.Retry}: func(t *testing.T, s *Store, c job.Claimed) error {
		t.Helper()
		s.marks = newLowWaterMarks()
		settled(t, s, claim(t, s, 1)[0], job.Failure)
		_, err := s.Promote(t.Context(), 1)
		require.NoError(t, err)
		requireState(t, s, c.JobID, job.Queued)
		return postpone(t, s, c.JobID)
	},
	{job.Queued, job.Canceled}:   moved((*Store).Cancel),
	{job.Running, job.Succeeded}: endsAs(job.Success),
	{job.Running, job.Retry}:     endsAs(job.Failure),
	{job.Running, job.Dead}:      endsAs(job.PermanentFailure),
	{job.Running, job.Queued}:    endsAs(job.Released),
	{job.Running, job.Canceled}:  endsAs(job.CancelConfirmed),
	{job.Retry, job.Queued}: func(t *testing.T, s *Store, _ job.Claimed) error {
		t.Helper()
		_, err := s.Promote(t.Context(), 1)
		return err
	},
	{job.Retry, job.Canceled}: moved((*Store).Cancel),
	{job.Dead, job.Queued}:    moved((*Store).Requeue),
}

func moved[T any](verb func(*Store, context.Context, job.ID) (T, error)) func(*testing.T, *Store, job.Claimed) error {
	return func(t *testing.T, s *Store, c job.Claimed) error {
		t.Helper()
		_, err := verb(s, t.Context(), c.JobID)
		return err
	}
}

func endsAs(kind job.OutcomeKind) func(*testing.T, *Store, job.Claimed) error {
	return func(t *testing.T, s *Store, c job.Claimed) error {
		t.Helper()
		settled(t, s, c, kind)
		return nil
	}
}

// complete makes the transitions that no sequence has made, so that all have been made whatever
// was drawn.
func (c *coverage) complete(t *testing.T) {
	t.Helper()
	for _, from := range job.States() {
		for _, to := range job.States() {
			edge := [2]job.State{from, to}
			if !from.CanBecome(to) || edge == notByVerbs || c.edges[edge] > 0 {
				continue
			}
			require.Contains(t, ways, edge, "no sequence and no test moves a job from %s to %s", from, to)
			c.make(t, edge)
		}
	}
}

func (c *coverage) make(t *testing.T, edge [2]job.State) {
	t.Helper()
	s := open(t)
	one := reach(t, s, edge[0])
	requireState(t, s, one.JobID, edge[0])
	require.NoError(t, ways[edge](t, s, one))
	requireState(t, s, one.JobID, edge[1])
	c.edge(edge[0], edge[1])
	c.direct++
}

func TestEveryTransitionHasAVerb(t *testing.T) {
	all := newCoverage()
	all.complete(t)
	require.Len(t, all.edges, all.direct)
}

// What clients and operators may do to a job in each state. Whatever is refused changes nothing.
func TestEveryVerbIsRefusedInEveryOtherState(t *testing.T) {
	s := open(t)
	for verb, one := range map[string]struct {
		do      func(job.ID) error
		allowed []job.State
	}{
		"cancel":  {func(id job.ID) error { _, err := s.Cancel(t.Context(), id); return err }, []job.State{job.Created, job.Queued, job.Running, job.Retry, job.Canceled}},
		"hold":    {func(id job.ID) error { _, err := s.Hold(t.Context(), id); return err }, []job.State{job.Created}},
		"release": {func(id job.ID) error { _, err := s.Release(t.Context(), id); return err }, []job.State{job.Created}},
		"edit":    {func(id job.ID) error { return postpone(t, s, id) }, []job.State{job.Created, job.Queued, job.Retry}},
		"requeue": {func(id job.ID) error { _, err := s.Requeue(t.Context(), id); return err }, []job.State{job.Dead}},
		"erase":   {func(id job.ID) error { _, err := s.Erase(t.Context(), id, "", ""); return err }, []job.State{job.Succeeded, job.Dead, job.Canceled}},
	} {
		for _, state := range job.States() {
			exec(t, s, "truncate ready, leases, jobs, timers, dead_letters, expiries, unsuccessful_attempts")
			c := reach(t, s, state)
			before := row(t, s, c.JobID)
			err := one.do(c.JobID)
			if slices.Contains(one.allowed, state) {
				require.NoError(t, err, "%s a job that is %s", verb, state)
				continue
			}
			require.ErrorIs(t, err, job.ErrWrongState, "%s a job that is %s", verb, state)
			require.Equal(t, before, row(t, s, c.JobID), "%s a job that is %s", verb, state)
			requireSound(t, s)
		}
	}
}
