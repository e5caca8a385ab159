package runtime_test

import (
	"context"
	"encoding/json"
	"time"

	"github.com/holdfast-jobs/holdfast/runtime"
	"github.com/holdfast-jobs/holdfast/runtime/job"
)

// hooked is a store some of whose verbs are watched, delayed or broken. A hook
// that is nil leaves its verb alone.
type hooked struct {
	runtime.Store
	claim   func(types []string, limit int)
	claimed func(err error) error
	renew   func(ctx context.Context, renew renewal) ([]job.Renewed, error)
	settle  func(batch []job.Settlement)
	send    func(job.Notice) error
	listen  func() error
	called  func(ctx context.Context, verb string)
}

type renewal func(context.Context) ([]job.Renewed, error)

func (h *hooked) note(ctx context.Context, verb string) {
	if h.called != nil {
		h.called(ctx, verb)
	}
}

func (h *hooked) Claim(ctx context.Context, worker string, types []string, limit int, lease time.Duration) ([]job.Claimed, error) {
	h.note(ctx, "claim")
	if h.claim != nil {
		h.claim(types, limit)
	}
	claimed, err := h.Store.Claim(ctx, worker, types, limit, lease)
	if h.claimed != nil {
		if err = h.claimed(err); err != nil {
			return nil, err
		}
	}
	return claimed, err
}

func (h *hooked) Renew(ctx context.Context, worker string, leases []job.Lease, forgotten []job.LeaseID, lease time.Duration) ([]job.Renewed, error) {
	h.note(ctx, "renew")
	renew := func(ctx context.Context) ([]job.Renewed, error) {
		return h.Store.Renew(ctx, worker, leases, forgotten, lease)
	}
	if h.renew != nil {
		return h.renew(ctx, renew)
	}
	return renew(ctx)
}

func (h *hooked) Settle(ctx context.Context, batch []job.Settlement) ([]job.SettleResult, error) {
	h.note(ctx, "settle")
	if h.settle != nil {
		h.settle(batch)
	}
	return h.Store.Settle(ctx, batch)
}

func (h *hooked) Send(ctx context.Context, n job.Notice) error {
	h.note(ctx, "send")
	if h.send != nil {
		return h.send(n)
	}
	return h.Store.Send(ctx, n)
}

func (h *hooked) Listen(ctx context.Context, ready func(), heard func(job.Notice)) error {
	if h.listen != nil {
		return h.listen()
	}
	return h.Store.Listen(ctx, ready, heard)
}

func (h *hooked) Submit(ctx context.Context, batch []job.Submission) []job.Submitted {
	h.note(ctx, "submit")
	return h.Store.Submit(ctx, batch)
}

func (h *hooked) SaveProgress(ctx context.Context, batch []job.Report) ([]job.Lease, error) {
	h.note(ctx, "note")
	return h.Store.SaveProgress(ctx, batch)
}

func (h *hooked) Reap(ctx context.Context, limit int, lease time.Duration) ([]job.Expired, error) {
	h.note(ctx, "reap")
	return h.Store.Reap(ctx, limit, lease)
}

func (h *hooked) Promote(ctx context.Context, limit int) (job.Promoted, error) {
	h.note(ctx, "promote")
	return h.Store.Promote(ctx, limit)
}

func (h *hooked) NextDue(ctx context.Context) (time.Duration, bool, error) {
	h.note(ctx, "next due")
	return h.Store.NextDue(ctx)
}

func (h *hooked) Surroundings(ctx context.Context, host, worker string) (job.Surroundings, error) {
	h.note(ctx, "surroundings")
	return h.Store.Surroundings(ctx, host, worker)
}

func (h *hooked) ExpireWorkers(ctx context.Context, workers []string) (int, error) {
	h.note(ctx, "expire workers")
	return h.Store.ExpireWorkers(ctx, workers)
}

func (h *hooked) ReleaseUnanswered(ctx context.Context, worker string, known []job.LeaseID) (int, error) {
	h.note(ctx, "release unanswered")
	return h.Store.ReleaseUnanswered(ctx, worker, known)
}

func (h *hooked) DescribeWorker(ctx context.Context, worker string, plugins json.RawMessage) error {
	h.note(ctx, "describe worker")
	return h.Store.DescribeWorker(ctx, worker, plugins)
}

func (h *hooked) Ended(ctx context.Context, ids []job.ID) ([]job.View, error) {
	h.note(ctx, "ended")
	return h.Store.Ended(ctx, ids)
}
