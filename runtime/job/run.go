package job

import (
	"encoding/json"
	"time"
)

// CancelReason is why a handler is asked to stop.
type CancelReason string

// The reasons for stopping an attempt before its handler is done.
const (
	CancelRequested CancelReason = "canceled"
	CancelTimeout   CancelReason = "timeout"
	CancelLeaseLost CancelReason = "lease_lost"
	CancelShutdown  CancelReason = "shutdown"
)

// Run is one attempt under way in a handler process. Its methods never block
// and do nothing once the attempt has ended.
type Run interface {
	// Cancel asks the handler to stop.
	Cancel(reason CancelReason)
	// Kill ends the handler's process and every process of its group. This
	// attempt ends as Crash with Outcome.Killed, others in the process as
	// Released. It does nothing to a process that has died by itself.
	Kill()
	// Extend passes on that the lease is proven for leaseFor from now.
	Extend(leaseFor time.Duration)
}

// Reporter hears of an attempt from its handler process. The methods are
// called one after another, and must not block.
type Reporter interface {
	// Began is called for an attempt that must be alone, before all others:
	// its process is up, and its time begins. It is not called for the rest,
	// whose process is up when they are started, nor when no process came up.
	Began()
	// Finished is called exactly once, as the last of them: with the
	// handler's outcome, or with Crash when its process died.
	Finished(Outcome)
	// Progress and Checkpoint carry JSON from the handler. Of each only the last
	// counts. They return nil, or a channel when too much of what the plugin has
	// reported is not written yet: nothing more should be taken from its process
	// until the channel is closed, or the process is gone.
	Progress(json.RawMessage) (room <-chan struct{})
	Checkpoint(json.RawMessage) (room <-chan struct{})
	// Log carries a line that the handler has logged.
	Log(LogLine)
}
