package store

import (
	"context"
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/holdfast-jobs/holdfast/runtime/job"
	"github.com/holdfast-jobs/holdfast/store/postgres"
)

// dag is a workflow whose jobs are worked, killed, killed for good, requeued and canceled at
// random, and what may have become of each of them.
type dag struct {
	t     testing.TB
	s     *Store
	dice  *rand.Rand
	id    job.ID
	ids   []job.ID
	place map[job.ID]int
	steps []job.WorkflowStep // without the last one

	started           []int  // how often each was claimed
	died, canceled    []bool // ever dead; canceled by an operator
	succeeded         []int
	running           []job.Claimed
	dead              map[int]bool
	kills, deaths, un int
}

// newDAG submits a workflow in which a job comes after up to four earlier ones.
func newDAG(t testing.TB, s *Store, seed uint64, jobs int) *dag {
	t.Helper()
	d := &dag{t: t, s: s, dice: rand.New(rand.NewPCG(seed, 0)), place: make(map[job.ID]int), dead: make(map[int]bool)}
	for i := range jobs {
		one := named(t, fmt.Sprintf("job %d", i))
		for range d.dice.IntN(5) {
			if before := i - 1 - d.dice.IntN(30); before >= 0 && !slices.Contains(one.After, before) {
				one.After = append(one.After, before)
			}
		}
		one.OnDeath = []job.OnDeath{job.OnDeathWait, job.OnDeathWait, job.OnDeathWait, job.OnDeathWait, job.OnDeathSkip, job.OnDeathCancel}[d.dice.IntN(6)]
		one.MaxAttempts = 3
		d.steps = append(d.steps, one)
	}
	w := workflow(t, d.steps...)
	w.OnComplete = new(submission(t))
	d.id, d.ids = w.ID, submitWorkflow(t, s, w)
	for i, id := range d.ids {
		d.place[id] = i
	}
	n := len(d.ids)
	d.started, d.died, d.canceled, d.succeeded = make([]int, n), make([]bool, n), make([]bool, n), make([]int, n)
	return d
}

// state is what the ledger says of a job, and whether the follower has skipped it.
func (d *dag) state(i int) (state job.State, skipped bool) {
	d.t.Helper()
	state = job.State(ask[string](d.t, d.s, "select state::text from jobs where job_id = $1", postgres.UUID(d.ids[i])))
	return state, ask[bool](d.t, d.s, "select skipped from workflow_jobs where job_id = $1", postgres.UUID(d.ids[i]))
}

// claim starts jobs. Each must come after those that it names.
func (d *dag) claim(most int) {
	d.t.Helper()
	_, err := d.s.Promote(d.t.Context(), 1000)
	require.NoError(d.t, err)
	d.s.marks = newLowWaterMarks()
	for _, c := range claim(d.t, d.s, most) {
		i := d.place[c.JobID]
		d.started[i]++
		require.Zero(d.t, d.succeeded[i], "a job that has succeeded starts again")
		if i == len(d.steps) {
			require.Len(d.t, c.Predecessors, len(d.steps))
			for before := range d.steps {
				state, _ := d.state(before)
				require.Contains(d.t, []job.State{job.Succeeded, job.Canceled}, state, "the last job is early")
			}
		} else {
			require.Len(d.t, c.Predecessors, len(d.steps[i].After))
		}
		for k, p := range c.Predecessors {
			before := k
			if i < len(d.steps) {
				before = d.steps[i].After[k]
			}
			require.Equal(d.t, d.ids[before], p.ID)
			state, skipped := d.state(before)
			require.Equal(d.t, state == job.Succeeded, p.Succeeded)
			if i < len(d.steps) {
				require.True(d.t, state == job.Succeeded || skipped, "job %d started while job %d before it is %s", i, before, state)
			}
		}
		d.running = append(d.running, c)
	}
}

// end ends one of the running jobs: well, badly, for good, or by the death of its worker.
func (d *dag) end(how int) {
	d.t.Helper()
	if len(d.running) == 0 {
		return
	}
	at := d.dice.IntN(len(d.running))
	c := d.running[at]
	d.running = slices.Delete(d.running, at, at+1)
	i := d.place[c.JobID]
	switch {
	case how < 70:
		if d.dice.IntN(10) == 0 {
			c.Followed = false // an orchestrator that tells nobody
			d.un++
		}
		settled(d.t, d.s, c, job.Success)
		d.succeeded[i]++
	case how < 80:
		settled(d.t, d.s, c, job.Failure)
		if c.Attempt == c.MaxAttempts {
			d.died[i], d.dead[i] = true, true
			d.deaths++
		}
	case how < 90:
		settled(d.t, d.s, c, job.PermanentFailure)
		d.died[i], d.dead[i] = true, true
		d.deaths++
	default:
		settled(d.t, d.s, c, job.Interrupted)
		d.kills++
		if get(d.t, d.s, c.JobID).State == job.Dead {
			d.died[i], d.dead[i] = true, true
		}
		settle(d.t, d.s, as(c, job.Success)) // the killed worker's comes too late
		require.NotEqual(d.t, job.Succeeded, get(d.t, d.s, c.JobID).State)
	}
}

// follow does a round, or one that is cut off before its end.
func (d *dag) follow() {
	d.t.Helper()
	if d.dice.IntN(4) > 0 {
		follow1(d.t, d.s)
		return
	}
	ctx, cancel := context.WithTimeout(d.t.Context(), time.Duration(d.dice.IntN(3000))*time.Microsecond)
	defer cancel()
	_, _ = d.s.Follow(ctx, job.FollowPlan{})
}

func (d *dag) requeue(i int) {
	d.t.Helper()
	_, err := d.s.Requeue(d.t.Context(), d.ids[i])
	require.NoError(d.t, err)
	delete(d.dead, i)
}

// step does something at random.
func (d *dag) step() {
	d.t.Helper()
	switch what := d.dice.IntN(100); {
	case what < 30:
		d.claim(1 + d.dice.IntN(20))
	case what < 75:
		d.end(d.dice.IntN(100))
	case what < 88:
		d.follow()
	case what < 94:
		for i := range d.dead {
			d.requeue(i)
			break
		}
	case what < 96:
		_, err := d.s.SweepWorkflows(d.t.Context(), []job.ID{d.id})
		require.NoError(d.t, err)
	case what < 97 && d.dice.IntN(8) == 0:
		i := d.dice.IntN(len(d.steps))
		if slices.ContainsFunc(d.running, func(c job.Claimed) bool { return c.JobID == d.ids[i] }) {
			return // it would only be asked to stop
		}
		if done, err := d.s.Cancel(d.t.Context(), d.ids[i]); err == nil && done.Canceled {
			d.canceled[i] = true
		}
	}
}

// finish lets everything succeed from now on, until nothing changes any more.
func (d *dag) finish() {
	d.t.Helper()
	for quiet := 0; quiet < 5; {
		before := fmt.Sprint(d.succeeded, d.started)
		for i := range d.dead {
			d.requeue(i)
		}
		d.claim(1000)
		for len(d.running) > 0 {
			d.end(0)
		}
		follow1(d.t, d.s)
		_, err := d.s.SweepWorkflows(d.t.Context(), []job.ID{d.id})
		require.NoError(d.t, err)
		if quiet++; before != fmt.Sprint(d.succeeded, d.started) {
			quiet = 0
		}
	}
}

// check compares the end with what the rules say.
func (d *dag) check() {
	d.t.Helper()
	unsuccessful := 0
	states, skips := make([]job.State, len(d.ids)), make([]bool, len(d.ids))
	for i := range d.ids {
		states[i], skips[i] = d.state(i)
	}
	for i, state := range states {
		require.Contains(d.t, []job.State{job.Succeeded, job.Canceled}, state, "job %d has not ended", i)
		if state == job.Succeeded {
			require.Equal(d.t, 1, d.succeeded[i], "job %d", i)
			continue
		}
		unsuccessful++
		require.Zero(d.t, d.succeeded[i])
		if d.canceled[i] || i == len(d.steps) {
			continue
		}
		why := slices.ContainsFunc(d.steps[i].After, func(before int) bool {
			return d.died[before] && d.steps[i].OnDeath != job.OnDeathWait || states[before] == job.Canceled && !skips[before]
		})
		require.True(d.t, why, "job %d was canceled without a reason", i)
		require.Equal(d.t, d.steps[i].OnDeath == job.OnDeathSkip, skips[i], "job %d", i)
	}
	require.Equal(d.t, job.Succeeded, states[len(d.steps)], "the last job")
	w, err := d.s.Workflow(d.t.Context(), d.id)
	require.NoError(d.t, err)
	require.Zero(d.t, w.Remaining)
	require.Equal(d.t, unsuccessful, w.Unsuccessful)
	require.NotNil(d.t, w.FinishedAt)
	require.Zero(d.t, ends(d.t, d.s))
	requireSound(d.t, d.s)
}

func TestEveryJobOfAWorkflowComesAfterThoseItNames(t *testing.T) {
	sizes := []int{1, 10, 40, 40, 40}
	if !testing.Short() {
		sizes = append(sizes, 1000)
	}
	for _, jobs := range sizes {
		seed := rand.Uint64()
		t.Run(fmt.Sprintf("%d jobs, seed %d", jobs, seed), func(t *testing.T) {
			d := newDAG(t, open(t), seed, jobs)
			for range 8 * jobs {
				d.step()
			}
			d.finish()
			d.check()
			t.Logf("%d deaths, %d kills, %d ends untold", d.deaths, d.kills, d.un)
		})
	}
}
