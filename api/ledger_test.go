package api_test

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"maps"
	"slices"
	"sync"
	"time"

	"github.com/holdfast-jobs/holdfast/api"
	"github.com/holdfast-jobs/holdfast/runtime/job"
)

// ledger is a small Jobs in memory, with just enough state to tell answers apart.
type ledger struct {
	api.Jobs
	insides
	rules    ruleBook
	bulk     operationBook
	erasures []job.Erasure

	pluginEvents []job.PluginEvent
	pluginFilter job.PluginEventFilter
	commanded    job.PluginCommand
	workflows    workflowBook
	plans        *planBook
	diary
	mu        sync.Mutex
	submitted []job.Submission
	jobs      map[job.ID]job.View
	keys      map[string]int
	// filter, deadLetters and limit are the arguments of the latest call.
	filter      job.Filter
	edits       []job.Edit
	deadLetters job.DeadLetterFilter
	limit       int
	tree        job.TreeFilter
	lookup      job.Lookup
	// dead is how many dead letters there are, at least one.
	dead int
	// moved is closed when a job is finished. Unless it is nil, waiting receives a value
	// each time Await looks in vain.
	moved   chan struct{}
	waiting chan struct{}
	// declared are the job types that handlers have declared. All other types but one are
	// accepted without a declaration.
	declared []job.TypeSpec
	// refuses maps a job type to the error of its submissions.
	refuses map[string]error
	// Unless gate is nil, each submission sends on submitting and then waits for a value
	// from gate.
	gate, submitting chan struct{}
	// fails replaces the answer: it is returned, or is the value of a panic.
	fails  error
	panics any
}

var (
	birth = time.Date(2026, 2, 20, 1, 2, 3, 456000, time.FixedZone("", 3600))
	later = birth.Add(time.Minute)
)

func newLedger() *ledger {
	return &ledger{jobs: map[job.ID]job.View{}, keys: map[string]int{}, moved: make(chan struct{}), insides: idle()}
}

// forget empties the ledger, so that the handler can keep using it.
func (l *ledger) forget() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.submitted, l.jobs, l.keys = nil, map[job.ID]job.View{}, map[string]int{}
}

// finish moves all jobs to a final state.
func (l *ledger) finish() {
	l.mu.Lock()
	defer l.mu.Unlock()
	for id, v := range l.jobs {
		v.State, v.UpdatedAt = job.Succeeded, later
		l.jobs[id] = v
	}
	close(l.moved)
	l.moved = make(chan struct{})
}

func (l *ledger) interrupt() error {
	if l.panics != nil {
		panic(l.panics)
	}
	return l.fails
}

func (l *ledger) Submit(ctx context.Context, s job.Submission) (job.Receipt, error) {
	result := l.SubmitEach(ctx, []job.Submission{s})[0]
	return result.Receipt, result.Err
}

func (l *ledger) SubmitEach(ctx context.Context, batch []job.Submission) []job.Submitted {
	results := make([]job.Submitted, len(batch))
	if l.gate != nil {
		for range batch {
			l.submitting <- struct{}{}
		}
		for i := range batch {
			select {
			case <-l.gate:
			case <-ctx.Done():
				results[i].Err = ctx.Err()
			}
		}
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	for i, s := range batch {
		if results[i].Err == nil {
			results[i].Receipt, results[i].Err = l.submit(s)
		}
	}
	return results
}

func (l *ledger) SubmitAll(_ context.Context, batch []job.Submission) ([]job.Submitted, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	before, jobs, keys := l.submitted, maps.Clone(l.jobs), maps.Clone(l.keys)
	results := make([]job.Submitted, len(batch))
	failed := false
	for i, s := range batch {
		results[i].Receipt, results[i].Err = l.submit(s)
		failed = failed || results[i].Err != nil
	}
	if failed {
		l.submitted, l.jobs, l.keys = before, jobs, keys
	}
	return results, l.fails
}

func (l *ledger) submit(s job.Submission) (job.Receipt, error) {
	if err := l.interrupt(); err != nil {
		return job.Receipt{}, err
	}
	if err := l.refuses[s.Type]; err != nil {
		return job.Receipt{}, err
	}
	if i, used := l.keys[s.Tenant+"\x00"+s.IdempotencyKey]; used && s.IdempotencyKey != "" {
		first := l.submitted[i]
		if first.Type != s.Type || !bytes.Equal(first.Payload, s.Payload) {
			return job.Receipt{}, job.ErrKeyReused
		}
		v := l.jobs[first.ID]
		return job.Receipt{ID: v.ID, Type: v.Type, State: v.State, CreatedAt: v.CreatedAt, UpdatedAt: v.UpdatedAt, Replayed: true}, nil
	}
	for _, first := range l.submitted {
		if s.Unique != nil && first.Unique != nil && first.Unique.Digest == s.Unique.Digest {
			v := l.jobs[first.ID]
			return job.Receipt{ID: v.ID, Type: v.Type, State: v.State, CreatedAt: v.CreatedAt, UpdatedAt: v.UpdatedAt, Duplicate: true}, nil
		}
	}
	state := job.Queued
	if s.Hold || s.Delay > 0 || !s.RunAt.IsZero() {
		state = job.Created
	}
	l.keys[s.Tenant+"\x00"+s.IdempotencyKey] = len(l.submitted)
	l.submitted = append(l.submitted, s)
	l.jobs[s.ID] = job.View{ID: s.ID, Type: s.Type, Tenant: s.Tenant, State: state, CreatedAt: birth, UpdatedAt: birth}
	return job.Receipt{ID: s.ID, Type: s.Type, State: state, CreatedAt: birth, UpdatedAt: birth}, nil
}

func (l *ledger) Get(_ context.Context, id job.ID) (job.View, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if err := l.interrupt(); err != nil {
		return job.View{}, err
	}
	v, found := l.jobs[id]
	if !found {
		return job.View{}, job.ErrNotFound
	}
	return v, nil
}

// move changes a job's state when it is one of those given.
func (l *ledger) move(ctx context.Context, id job.ID, to job.State, from ...job.State) (job.View, error) {
	v, err := l.Get(ctx, id)
	if err != nil {
		return v, err
	}
	for _, state := range from {
		if v.State == state {
			v.State, v.UpdatedAt = to, later
			l.jobs[id] = v
			return v, nil
		}
	}
	return job.View{}, job.ErrWrongState
}

func (l *ledger) Cancel(ctx context.Context, id job.ID) (job.View, error) {
	if v, err := l.Get(ctx, id); err == nil && v.State == job.Running {
		return v, nil
	}
	return l.move(ctx, id, job.Canceled, job.Created, job.Queued, job.Retry, job.Canceled)
}

func (l *ledger) Release(ctx context.Context, id job.ID) (job.View, error) {
	return l.move(ctx, id, job.Queued, job.Created)
}

func (l *ledger) Requeue(ctx context.Context, id job.ID) (job.View, error) {
	return l.move(ctx, id, job.Queued, job.Dead)
}

func (l *ledger) Edit(ctx context.Context, id job.ID, edit job.Edit) (job.View, error) {
	l.edits = append(l.edits, edit)
	v, err := l.Get(ctx, id)
	if err == nil && (v.State.Final() || v.State == job.Running) {
		err = job.ErrWrongState
	}
	return v, err
}

// EditAll edits the jobs that List returns.
func (l *ledger) EditAll(ctx context.Context, filter job.Filter, edit job.Edit) (job.EditPage, error) {
	l.edits = append(l.edits, edit)
	listed, err := l.List(ctx, filter)
	page := job.EditPage{Next: listed.Next}
	for _, view := range listed.Jobs {
		page.Edited = append(page.Edited, job.Edited{ID: view.ID})
	}
	return page, err
}

func (l *ledger) Hold(ctx context.Context, id job.ID) (job.View, error) {
	return l.move(ctx, id, job.Created, job.Created)
}

// Await waits for the state to change.
func (l *ledger) Await(ctx context.Context, id job.ID) (job.View, error) {
	for {
		l.mu.Lock()
		moved := l.moved
		l.mu.Unlock()
		v, err := l.Get(ctx, id)
		if err != nil || v.State.Final() {
			return v, err
		}
		if l.waiting != nil {
			l.waiting <- struct{}{}
		}
		select {
		case <-moved:
		case <-ctx.Done():
			if errors.Is(ctx.Err(), context.DeadlineExceeded) {
				return l.Get(context.WithoutCancel(ctx), id)
			}
			return job.View{}, ctx.Err()
		}
	}
}

// List returns the jobs in pages, newest first. It ignores the filter.
func (l *ledger) List(_ context.Context, filter job.Filter) (job.Page, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.filter, l.limit = filter, filter.Limit
	page := job.Page{}
	for _, id := range slices.Backward(slices.SortedFunc(maps.Keys(l.jobs), byID)) {
		if filter.After != (job.ID{}) && byID(id, filter.After) >= 0 {
			continue
		}
		if len(page.Jobs) == filter.Limit {
			page.Next = page.Jobs[filter.Limit-1].ID
			break
		}
		page.Jobs = append(page.Jobs, l.jobs[id])
	}
	return page, l.interrupt()
}

// Find is List with the same details for every job.
func (l *ledger) Find(ctx context.Context, filter job.Filter) (job.FoundPage, error) {
	page, err := l.List(ctx, filter)
	found := job.FoundPage{Next: page.Next}
	for _, view := range page.Jobs {
		found.Jobs = append(found.Jobs, foundFrom(view))
	}
	return found, err
}

func foundFrom(view job.View) job.Found {
	return job.Found{
		View: view, Tags: []string{"nightly"}, Priority: 3, RunAt: birth, Charged: 1, MaxAttempts: 4, Worker: "worker-1",
		Code: "no", LastError: "no <luck>",
	}
}

// Lookup finds jobs by their ids, and the one whose key was submitted.
func (l *ledger) Lookup(_ context.Context, lookup job.Lookup) ([]job.Found, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.lookup = lookup
	var found []job.Found
	for _, id := range slices.Backward(slices.SortedFunc(maps.Keys(l.jobs), byID)) {
		view := l.jobs[id]
		keyed := slices.ContainsFunc(l.submitted, func(s job.Submission) bool { return s.ID == id && s.IdempotencyKey == lookup.Key })
		if (id == lookup.ID || keyed) && (lookup.Tenant == "" || lookup.Tenant == view.Tenant) && len(found) < lookup.Limit {
			found = append(found, foundFrom(view))
		}
	}
	return found, l.interrupt()
}

// Tree returns the job with all others of the ledger as its children.
func (l *ledger) Tree(_ context.Context, id job.ID, filter job.TreeFilter) (job.Tree, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.tree = filter
	first, found := l.jobs[id]
	if err := l.interrupt(); err != nil || !found {
		return job.Tree{}, cmp.Or(err, job.ErrNotFound)
	}
	tree := job.Tree{Jobs: []job.TreeJob{{View: first}}, Truncated: len(l.jobs) > filter.Limit}
	for _, other := range slices.SortedFunc(maps.Keys(l.jobs), byID) {
		if other != id {
			tree.Jobs = append(tree.Jobs, job.TreeJob{View: l.jobs[other], Parent: id, Depth: 1})
		}
	}
	return tree, nil
}

func (l *ledger) Count(_ context.Context, filter job.Filter) (job.Count, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.filter = filter
	return job.CountOf(job.MaxCount + 1), l.interrupt()
}

func byID(a, b job.ID) int { return bytes.Compare(a[:], b[:]) }

func (l *ledger) Redrive(_ context.Context, filter job.DeadLetterFilter) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.deadLetters, l.limit = filter, filter.Limit
	return filter.Limit, l.interrupt()
}

// DeadLetters lists dead letters, each a second older than the previous one.
func (l *ledger) DeadLetters(_ context.Context, filter job.DeadLetterFilter) ([]job.DeadLetter, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.deadLetters, l.limit = filter, filter.Limit
	var letters []job.DeadLetter
	for i := range max(l.dead, 1) {
		letter := job.DeadLetter{
			ID: job.ID{15: byte(7 + i)}, Type: "FAIL_JOB", Tenant: job.DefaultTenant,
			DeadAt: later.Add(-time.Duration(i) * time.Second), Attempts: 4, LastError: "no <luck>",
		}
		after := filter.After.DeadAt.IsZero() || letter.DeadAt.Before(filter.After.DeadAt)
		if after && len(letters) < filter.Limit {
			letters = append(letters, letter)
		}
	}
	return letters, l.interrupt()
}

// DeadLetterGroups is one group.
func (l *ledger) DeadLetterGroups(_ context.Context, filter job.DeadLetterFilter) ([]job.DeadLetterGroup, bool, error) {
	l.mu.Lock()
	l.deadLetters, l.limit = filter, filter.Limit
	l.mu.Unlock()
	return []job.DeadLetterGroup{{
		Type: "FAIL_JOB", Code: "no", Fingerprint: "0123456789abcdef", Message: "no <luck>", Count: job.CountOf(job.MaxCount + 1),
		DeadLetterTimes: job.DeadLetterTimes{FirstDeadAt: later, LastDeadAt: later}, Versions: []string{"v1"}, Samples: []job.ID{{15: 7}},
	}}, l.dead > 1, l.interrupt()
}

func (l *ledger) Types(context.Context) ([]job.TypeSpec, error) { return l.declared, l.interrupt() }

func (l *ledger) TypeSpec(_ context.Context, jobType string) (job.TypeSpec, error) {
	for _, spec := range l.declared {
		if spec.Type == jobType {
			return spec, nil
		}
	}
	if jobType == "NOBODYS_JOB" {
		return job.TypeSpec{}, job.ErrUnknownType
	}
	return job.TypeSpec{Type: jobType, MaxAttempts: 4, Timeout: 30 * time.Second}, nil
}

func (l *ledger) Ping(ctx context.Context) error {
	if l.fails != nil {
		<-ctx.Done() // a database that does not answer at all
		return ctx.Err()
	}
	return nil
}

func (l *ledger) Known(_ context.Context, s job.Submission) (bool, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	i, used := l.keys[s.Tenant+"\x00"+s.IdempotencyKey]
	return used && l.submitted[i].Type == s.Type && bytes.Equal(l.submitted[i].Payload, s.Payload), l.interrupt()
}
