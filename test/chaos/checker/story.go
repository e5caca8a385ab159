package main

import "github.com/holdfast-jobs/holdfast/test/chaos/history"

// stories is what the witness saw, job by job.
type stories struct {
	jobs map[string]*story
	// last is the state of all tables after the last change.
	last *tables
	// leases are all that were ever written, in the order of the witness, those included
	// that only an old primary has seen.
	leases []*lease
	// changes counts those of jobs in the witness.
	changes int
	// generations counts the primaries.
	generations int
	// gaps are when nobody looked, in order.
	gaps []gap
	// undone are, for each job, the times from a change that only an old primary has seen until
	// the next one was seen.
	undone map[string][]gap
	// handled is what handlers wrote, by attempt.
	handled map[attempt]handled
	// same are the processes with the same ids, by index: ids of different hosts may be the same.
	same map[processID][]int
}

// gap is a time between two generations, from the last change that was seen of the one to the
// first of the other.
type gap struct{ from, to history.Nanos }

// attempt is an attempt as its handler saw it.
type attempt struct {
	job   string
	fence int64
}

// handled is what the handler of an attempt wrote last of each kind; nil for nothing.
type handled struct{ began, done, ended *effect }

// processID is what a process knows of itself.
type processID struct {
	pid     int
	started uint64
}

// story is what happened to one job.
type story struct {
	id string
	// born is the change that made the job; nil if it was there, or happened, while nobody
	// looked.
	born *step
	// steps are in the order of the commits.
	steps []*step
}

// step is what one transaction did to a job.
type step struct {
	line       string
	generation int
	lsn        history.LSN
	committed  history.Nanos
	// from and to are the actual states: running while there is a lease. from is empty for a
	// job that is new, to for one that was deleted.
	from, to string
	// before and after are the job's rows in the ledger.
	before, after history.Row
	// held and holds are the lease before and after.
	held, holds *lease
	// attempt is the row that was written for the attempt that ended; nil for none.
	attempt history.Row
	// listed names the lists that the job is in afterwards.
	listed []string
	// unseen says that this happened between two generations: any number of
	// transitions.
	unseen bool
}

// lease is a row of leases as long as its id is the same.
type lease struct {
	job, id   string
	worker    string // by the last change of the row
	fence     int64
	line      string
	committed history.Nanos
	// claimed, own and expires are the database's times. A lease that is kept lasts as long as its
	// worker, and its own expires_at says nothing; expires is when it does expire.
	claimed, own, expires history.Nanos
	kept                  bool
	// over is the lease that a reaper has taken this one over from; nil for a claim.
	over *lease
	// taken is when a reaper took this lease over; 0 for never.
	taken history.Nanos
	// orphaned says that only an old primary has seen it.
	orphaned bool
	// revived are the renewals after it had expired.
	revived []string
}

// original is the lease of the claim.
func (l *lease) original() *lease {
	for l.over != nil {
		l = l.over
	}
	return l
}

// tables are the rows at a moment.
type tables struct {
	ledger map[string]history.Row
	leases map[string]*lease
	// workers are until when each worker counts as alive.
	workers map[string]history.Nanos
	// lists counts the rows of each job in each list.
	lists map[string]map[string]int
	// history are the attempts that did not succeed.
	history map[attempt]history.Row
}

func empty() *tables {
	lists := make(map[string]map[string]int)
	for _, name := range []string{"ready", "parked", "timers", "dead_letters"} {
		lists[name] = make(map[string]int)
	}
	return &tables{
		ledger: make(map[string]history.Row), leases: make(map[string]*lease), workers: make(map[string]history.Nanos), lists: lists, history: make(map[attempt]history.Row),
	}
}

// state is the actual state of a job; empty if there is none.
func (t *tables) state(job string) string {
	if t.leases[job] != nil {
		return "running"
	}
	return t.ledger[job]["state"]
}

// note adds or deletes a row of unsuccessful_attempts.
func (t *tables) note(row history.Row, gone bool) {
	fence, _ := row.Int("fence")
	if at := (attempt{row["job_id"], fence}); gone {
		delete(t.history, at)
	} else {
		t.history[at] = row
	}
}

func (t *tables) listed(job string) []string {
	var in []string
	for _, name := range []string{"ready", "parked", "timers", "dead_letters"} {
		for range t.lists[name][job] {
			in = append(in, name)
		}
	}
	return in
}

// claims yields the claims that were seen and are not orphaned.
func (s *stories) claims(each func(story *story, before *step)) {
	for _, one := range s.jobs {
		for _, step := range one.steps {
			if step.holds != nil && step.holds.over == nil && step.held != step.holds && !step.unseen {
				each(one, step)
			}
		}
	}
}
