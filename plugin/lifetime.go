package plugin

import (
	"context"
	"sync"
	"time"
)

// lifetime is the context of an attempt. A context that can end is dear: it has a timer, and is
// known to its parent. So it is made when the handler first asks for more than a value of this
// package. Many handlers never do.
type lifetime struct {
	of       *attempt
	deadline time.Time

	mu sync.Mutex
	// made is the context that has everything; nil until it is asked for.
	made   context.Context
	cancel context.CancelCauseFunc
	// over says that the attempt's time ended before the context was made, because of cause.
	over  bool
	cause error
}

var _ context.Context = (*lifetime)(nil)

// Deadline implements context.Context.
func (l *lifetime) Deadline() (time.Time, bool) { return l.deadline, true }

// Done implements context.Context.
func (l *lifetime) Done() <-chan struct{} { return l.make().Done() }

// Err implements context.Context.
func (l *lifetime) Err() error { return l.make().Err() }

// Value implements context.Context.
func (l *lifetime) Value(key any) any {
	if key == (attemptKey{}) {
		return l.of
	}
	return l.make().Value(key)
}

// String is the context in messages, without what the handler may change meanwhile.
func (l *lifetime) String() string { return "context of job " + l.of.start.GetJobId() }

// make returns the context that has everything. It has ended if the attempt's time has.
func (l *lifetime) make() context.Context {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.made != nil {
		return l.made
	}
	start := l.of.start
	values := withBaggage(withSpan(l.of.session.ctx, start.GetTraceparent(), start.GetTracestate()), start.GetBaggage())
	if l.over { // What happened to the session since then does not count.
		values = context.WithoutCancel(values)
	}
	ctx, cancel := context.WithCancelCause(values)
	if l.over && l.cause != ErrTimeout { //nolint:errorlint // it is ours
		cancel(l.cause)
	}
	ctx, release := context.WithDeadlineCause(ctx, l.deadline, ErrTimeout)
	l.made = ctx
	l.cancel = func(cause error) {
		cancel(cause)
		release()
	}
	if l.over {
		l.cancel(l.cause)
	}
	return l.made
}

// end ends the context, unless it has ended. A nil cause is that the attempt is over.
func (l *lifetime) end(cause error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.made != nil {
		l.cancel(cause)
		return
	}
	if l.over {
		return
	}
	l.over, l.cause = true, cause
	if lost := context.Cause(l.of.session.ctx); lost != nil {
		l.cause = lost
	} else if !time.Now().Before(l.deadline) {
		l.cause = ErrTimeout
	}
}
