package plugin

import "time"

// An attempt is asked to stop when a sixth of its lease is left, at most
// maxLeaseMargin.
const (
	leaseMargin    = 6
	maxLeaseMargin = 5 * time.Second
)

// lease is how long an attempt may go on without an extension from the
// orchestrator. The session's mutex guards it.
type lease struct {
	until  time.Time
	margin time.Duration
	// warned says that the attempt was asked to stop.
	warned bool
}

// next is when to look at the lease again.
func (l *lease) next() time.Time {
	if l.warned {
		return l.until
	}
	return l.until.Add(-l.margin)
}

// watch is the timer for the leases of a session: one, however many attempts there are. It goes
// off when the first of them may need something, and often finds that it has been extended, or
// that its attempt has ended. The session's mutex guards it.
type watch struct {
	// check is what it calls.
	check func()
	timer *time.Timer
	// at is when it goes off; zero for never.
	at time.Time
}

// sooner makes the watch go off at that time, unless it goes off before.
func (w *watch) sooner(at time.Time) {
	switch {
	case !w.at.IsZero() && !at.Before(w.at):
		return
	case w.timer == nil:
		w.timer = time.AfterFunc(time.Until(at), w.check)
	default:
		w.timer.Reset(time.Until(at))
	}
	w.at = at
}

func (w *watch) stop() {
	if w.timer != nil {
		w.timer.Stop()
	}
}

// extend makes the leases of attempts last for d from now. Those that have ended need none.
func (s *session) extend(handles []uint64, d time.Duration) {
	now := time.Now()
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, handle := range handles {
		if a := s.attempts[handle]; a != nil {
			s.extendLocked(a, now, d)
		}
	}
}

func (s *session) extendLocked(a *attempt, now time.Time, d time.Duration) {
	a.lease = lease{until: now.Add(d), margin: min(d/leaseMargin, maxLeaseMargin)}
	s.leases.sooner(a.lease.next())
}

// checkLeases asks attempts to stop of whose lease only the margin is left, and ends the process
// when nothing is left of one. It compares with the clock, so that leases run out in a process
// that was stopped for a while.
func (s *session) checkLeases() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.leases.at = time.Time{}
	now := time.Now()
	for _, a := range s.attempts {
		if !now.Before(a.lease.until) {
			s.exit("the lease of job " + a.start.GetJobId() + " ran out and its handler has not stopped")
			continue
		}
		if !a.lease.warned && !now.Before(a.lease.next()) {
			a.lease.warned = true
			a.lifetime.end(ErrLeaseLost)
		}
		s.leases.sooner(a.lease.next())
	}
}
