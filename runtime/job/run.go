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

// Run is an attempt that a plugin process runs. Its methods never block, and do nothing
// once the attempt has ended.
type Run interface {
	// Cancel asks the handler to stop.
	Cancel(reason CancelReason)
	// Kill ends the plugin process and all processes of its group. This attempt ends as
	// Crash with Outcome.Killed, others in the process as Released. It does nothing to a
	// process that has died by itself.
	Kill()
	// Extend tells the plugin process that the lease is proven for leaseFor from now.
	Extend(leaseFor time.Duration)
}

// Reporter receives what a plugin process sends about an attempt. Its methods are called
// one after another, and must not block.
type Reporter interface {
	// Began is called for an isolated attempt, before the other methods, once its process
	// is up: its time begins. It is not called if no process came up, nor for shared
	// attempts, whose process is up when they are started.
	Began()
	// Finished is called exactly once, after all others, with the handler's outcome, or
	// with Crash if its process died.
	Finished(Outcome)
	// Progress and Checkpoint carry JSON from the handler. Only the last of each counts.
	// They return nil, or a channel if too many reports of the plugin wait to be written:
	// then read nothing more from its process until the channel is closed, or the process
	// is gone.
	Progress(json.RawMessage) (room <-chan struct{})
	Checkpoint(json.RawMessage) (room <-chan struct{})
	// Log carries a line that the handler logged.
	Log(LogLine)
}
