package runtime

import (
	"context"
	"log/slog"
	"time"

	"github.com/holdfast-jobs/holdfast/internal/loop"
	"github.com/holdfast-jobs/holdfast/runtime/job"
	"github.com/holdfast-jobs/holdfast/runtime/metrics"
)

// Parts of the lease. The heartbeat renews three times a lease, so that two renewals
// may fail. Without a lease to renew it rests for a ninth more, because a crowd of idle workers
// asks the database for little else. That is still less than half a lease, by which a reaper
// tells who is alive. When a quarter of an unproven lease is left, the handler is asked to stop;
// when a twelfth is left, its process is killed, so that it is gone before anybody else
// can own the job.
const (
	beatsPerLease  = 3
	idleRest       = 9 // a ninth
	retriesPerBeat = 4
	askBefore      = 4  // a quarter
	killBefore     = 12 // a twelfth
	fenceChecks    = 48 // a forty-eighth between two looks
)

// keptFor is how long a kept lease is not named. Then it is once, so that orchestrators of earlier
// versions, which know only its own expiry of an hour, see that it is held.
const keptFor = 20 * time.Minute

// heartbeat renews every lease this worker holds, and stops the handlers of those it
// cannot prove.
type heartbeat struct {
	cfg      Config
	store    Store
	inFlight *inFlight
	metrics  *metrics.Metrics
	now      loop.Signal // a beat is wanted at once
	// forgotten are kept leases of which no attempt is left, such as those of attempts that were given
	// up. They would be renewed for as long as this process lives.
	forgotten []job.LeaseID
}

func (h *heartbeat) run(ctx context.Context) {
	period := h.cfg.Lease / beatsPerLease
	pause, rest := period, h.cfg.Lease/idleRest
	for h.due(ctx, pause, rest) {
		pause, rest = period, h.cfg.Lease/idleRest
		if err := h.beat(ctx); err != nil && ctx.Err() == nil {
			h.cfg.Log.Warn("heartbeat failed; trying again", slog.Any("error", err))
			pause, rest = period/retriesPerBeat, 0
		}
	}
}

// due waits for the pause, and then, if there is nothing to renew, for the rest; or until a beat is
// wanted at once. It returns false when the context ends first.
func (h *heartbeat) due(ctx context.Context, pause, rest time.Duration) bool {
	timer := time.NewTimer(loop.Jittered(pause))
	defer timer.Stop()
	for rested := false; ; rested = true {
		select {
		case <-timer.C:
		case <-h.now:
			return true
		case <-ctx.Done():
			return false
		}
		if _, held := h.inFlight.counts(); held > 0 || rested {
			return true
		}
		timer.Reset(loop.Jittered(rest))
	}
}

// beat renews all leases in one transaction. It names only those that are not kept. A lease is proven for its
// length from before the request was sent: the database's clock ran on while the request travelled.
func (h *heartbeat) beat(ctx context.Context) error {
	sent := time.Now()
	asked := h.inFlight.all()
	named := make([]job.Lease, 0, len(asked))
	for _, a := range asked {
		if lease, ok := a.unkept(sent); ok {
			named = append(named, lease)
		}
	}
	try, cancel := context.WithTimeout(ctx, h.cfg.Lease/beatsPerLease)
	defer cancel()
	renewed, err := h.store.Renew(try, h.cfg.Worker.ID, named, h.forgotten, h.cfg.Lease)
	h.metrics.Batch(metrics.OpHeartbeat, len(asked), sent, err)
	if err != nil {
		return err
	}
	proven := make(map[job.LeaseID]job.Renewed, len(renewed))
	for _, lease := range renewed {
		proven[lease.ID] = lease
	}
	now := time.Now()
	for _, a := range asked {
		lease, ok := proven[a.claimed.ID]
		switch {
		case !ok && a.nameAgain():
			h.now.Raise() // and name it: a failover may have lost that it is kept
			continue
		case !ok:
			a.stop(job.CancelLeaseLost) // which does nothing if it has just been settled
			continue
		}
		delete(proven, a.claimed.ID)
		a.proven(sent.Add(h.cfg.Lease), now, lease.Kept)
		if lease.CancelRequested {
			a.cancelRequested()
		}
	}
	h.forgotten = h.forgotten[:0]
	for id := range proven { // which are kept: a lease is kept after a beat that named it
		h.forgotten = append(h.forgotten, id)
	}
	return nil
}

// watch fences attempts whose leases run out unproven. It needs no database, and shares
// nothing with the beats that could make it wait for one.
func (h *heartbeat) watch(ctx context.Context) {
	tick := time.NewTicker(max(h.cfg.Lease/fenceChecks, time.Millisecond))
	defer tick.Stop()
	for {
		select {
		case <-tick.C:
		case <-ctx.Done():
			return
		}
		now := time.Now()
		for _, a := range h.inFlight.all() {
			a.fence(now, h.cfg.Lease/askBefore, h.cfg.Lease/killBefore)
		}
	}
}
