package conformance

import (
	"context"
	"syscall"
	"time"

	"github.com/holdfast-jobs/holdfast/plugin/host"
	"github.com/holdfast-jobs/holdfast/plugin/internal/handlerv1"
	"github.com/holdfast-jobs/holdfast/plugin/internal/protocol"
)

const (
	// healthWithin is how long a health check may take.
	healthWithin = 2 * time.Second
	// ownTime is the timeout of an attempt in the check of deadlines.
	ownTime = time.Second
	// lostLease is the lease that nobody extends. An end that is late by at most
	// late still counts: the two processes have two clocks.
	lostLease = 3 * time.Second
	late      = 300 * time.Millisecond
	// heldLease is a lease that is extended after each third, for heldFor. The
	// check is repeated up to tries times if we extend it too late ourselves.
	heldLease = 3 * time.Second
	heldFor   = 4 * time.Second
	tries     = 3
	// mostBusy bounds how many jobs are started at once.
	mostBusy = 100
	// noiseTime is how long the lines of a process are counted, and
	// maxLinesPerSecond how many of them an orchestrator logs.
	noiseTime         = 1500 * time.Millisecond
	maxLinesPerSecond = 100
	// stdinWithin is how long a process may take to exit when its standard input
	// ends.
	stdinWithin = 2 * time.Second
)

// begun starts a slow job and gives it time to begin.
func (k *kit) begun(s *session) (handle uint64, early *handlerv1.Outcome) {
	handle = s.start(k.Slow, nil)
	return handle, s.await(handle, settle)
}

func tooShort(outcome *handlerv1.Outcome) finding {
	return failed("%s at once; --slow-payload must make a job run for 30 s or more", describe(outcome))
}

func checkCancel(_ context.Context, k *kit, s *session) finding {
	var slowest time.Duration
	for _, reason := range []handlerv1.Cancel_Reason{
		handlerv1.Cancel_REASON_CANCELED, handlerv1.Cancel_REASON_TIMEOUT,
		handlerv1.Cancel_REASON_SHUTDOWN, handlerv1.Cancel_REASON_LEASE_LOST,
	} {
		handle, early := k.begun(s)
		if early != nil {
			return tooShort(early)
		}
		told := time.Now()
		s.cancel(handle, reason)
		outcome := s.await(handle, k.Grace)
		slowest = max(slowest, time.Since(told))
		switch {
		case outcome == nil && s.broken() != "":
			return failed("%s: %s", reason, s.broken())
		case outcome == nil:
			return failed("%s: it has not stopped after %s; an orchestrator kills its process", reason, k.Grace)
		case outcome.GetCanceled() != nil:
		case reason == handlerv1.Cancel_REASON_TIMEOUT && outcome.GetFailed() != nil:
		case reason == handlerv1.Cancel_REASON_LEASE_LOST && outcome.GetFailed().GetCode() == protocol.CodeLeaseLost:
		default:
			return failed("%s: %s, not canceled", reason, describe(outcome))
		}
	}
	return passed("it stopped after %s at most", slowest.Round(time.Millisecond))
}

func checkDeadline(_ context.Context, k *kit, s *session) finding {
	begun := time.Now()
	handle := s.start(k.Slow, func(start *handlerv1.Start) { start.TimeoutMs = uint64(ownTime.Milliseconds()) })
	outcome := s.await(handle, ownTime+late)
	byItself := outcome != nil
	if !byItself {
		s.cancel(handle, handlerv1.Cancel_REASON_TIMEOUT)
		outcome = s.await(handle, k.Grace)
	}
	took := time.Since(begun)
	switch {
	case outcome == nil && s.broken() != "":
		return failed("%s", s.broken())
	case outcome == nil:
		return failed("it still runs %s after its timeout", k.Grace)
	case took < ownTime-late:
		return tooShort(outcome)
	case outcome.GetFailed().GetCode() != protocol.CodeTimeout && (byItself || outcome.GetCanceled() == nil):
		return failed("%s, not failed (%s)", describe(outcome), protocol.CodeTimeout)
	}
	return passed("%s after %s", describe(outcome), took.Round(time.Millisecond))
}

func checkLeaseLost(_ context.Context, k *kit, s *session) finding {
	begun := time.Now()
	handle := s.start(k.Slow, func(start *handlerv1.Start) { start.LeaseMs = uint64(lostLease.Milliseconds()) })
	outcome := s.await(handle, lostLease+late)
	took := time.Since(begun)
	switch {
	case outcome == nil && s.process.leaves(late):
		return passed("its process ended after %s", time.Since(begun).Round(time.Millisecond))
	case outcome == nil && s.broken() != "":
		return failed("%s, and it still runs", s.broken())
	case outcome == nil:
		return failed("it still runs %s after the end of a lease of %s", late, lostLease)
	case took < lostLease/2 || outcome.GetSucceeded() != nil:
		return tooShort(outcome)
	}
	return passed("%s after %s of %s", describe(outcome), took.Round(time.Millisecond), lostLease)
}

// checkLeaseExtended is skipped on a machine so busy that our own extensions come
// late.
func checkLeaseExtended(ctx context.Context, k *kit) finding {
	for range tries {
		if found, inTime := holdLease(ctx, k); inTime {
			return found
		}
	}
	return skipped("this machine is too busy to extend a lease of %s in time", heldLease)
}

// holdLease extends the lease of one attempt, and reports whether all extensions
// were sent in time.
func holdLease(ctx context.Context, k *kit) (found finding, inTime bool) {
	inTime = true
	found = k.with(ctx, func(ctx context.Context, s *session) finding {
		handle := s.start(k.Slow, func(start *handlerv1.Start) { start.LeaseMs = uint64(heldLease.Milliseconds()) })
		extended := time.Now()
		for begun := extended; time.Since(begun) < heldFor && ctx.Err() == nil; {
			outcome := s.await(handle, heldLease/3)
			inTime = inTime && time.Since(extended) < heldLease/2
			if outcome != nil {
				return failed("after %s: %s", time.Since(begun).Round(time.Millisecond), describe(outcome))
			}
			if why := s.broken(); why != "" {
				return failed("%s", why)
			}
			s.extend(handle, heldLease)
			extended = time.Now()
		}
		s.cancel(handle, handlerv1.Cancel_REASON_CANCELED)
		s.await(handle, k.Grace)
		return passed("it ran for %s on leases of %s", heldFor, heldLease)
	})
	return found, inTime || found.status == Passed
}

// wanted is how many attempts of the type a process accepts at once.
func (k *kit) wanted(jobType string) int {
	wanted := int(k.manifest.GetConcurrency())
	if wanted == 0 {
		wanted = host.DefaultConcurrency
	}
	if own := int(k.declared(jobType).GetConcurrency()); own > 0 {
		wanted = min(wanted, own)
	}
	return wanted
}

func checkBusyHealth(ctx context.Context, k *kit, s *session) finding {
	handles := make([]uint64, 0, mostBusy)
	for range min(k.wanted(k.Slow.Type), mostBusy) {
		handles = append(handles, s.start(k.Slow, nil))
	}
	if outcome := s.await(handles[0], settle); outcome != nil {
		return tooShort(outcome)
	}
	var slowest time.Duration
	for range 5 {
		asked := time.Now()
		if err := s.process.healthy(ctx, healthWithin); err != nil {
			return failed("with %d jobs under way: %v", len(handles), err)
		}
		slowest = max(slowest, time.Since(asked))
		if s.ends(settle / 4) {
			return failed("with %d jobs under way: %s", len(handles), s.broken())
		}
	}
	return passed("with %d jobs under way it answered within %s", len(handles), slowest.Round(time.Millisecond))
}

func checkSignals(_ context.Context, _ *kit, s *session) finding {
	for _, signal := range []syscall.Signal{syscall.SIGINT, syscall.SIGTERM} {
		_ = s.process.cmd.Process.Signal(signal)
		if s.ends(settle) {
			return failed("after %s: %s", signal, s.broken())
		}
	}
	return passed("it continues")
}
