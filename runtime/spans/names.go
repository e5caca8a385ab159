package spans

import "go.opentelemetry.io/otel/attribute"

// The attributes of spans, links and events. docs/reference/telemetry.md says what each
// means; a test compares the two. The first are OpenTelemetry's conventions for
// messaging and for errors.
const (
	attrSystem        attribute.Key = "messaging.system"
	attrOperation     attribute.Key = "messaging.operation.name"
	attrOperationType attribute.Key = "messaging.operation.type"
	attrDestination   attribute.Key = "messaging.destination.name"
	attrMessage       attribute.Key = "messaging.message.id"
	attrBodySize      attribute.Key = "messaging.message.body.size"
	attrErrorType     attribute.Key = "error.type"
	attrException     attribute.Key = "exception.type"
	attrExceptionText attribute.Key = "exception.message"
	attrExceptionAt   attribute.Key = "exception.stacktrace"

	attrJob           attribute.Key = "job.id"
	attrType          attribute.Key = "job.type"
	attrTenant        attribute.Key = "job.tenant"
	attrPriority      attribute.Key = "job.priority"
	attrState         attribute.Key = "job.state"
	attrReason        attribute.Key = "job.reason"
	attrReplayed      attribute.Key = "job.replayed"
	attrDuplicate     attribute.Key = "job.duplicate"
	attrAttempt       attribute.Key = "job.attempt"
	attrMaxAttempts   attribute.Key = "job.max_attempts"
	attrFence         attribute.Key = "job.fence"
	attrWorker        attribute.Key = "job.worker"
	attrPlugin        attribute.Key = "job.plugin"
	attrPluginVersion attribute.Key = "job.plugin.version"
	attrOutcome       attribute.Key = "job.outcome"
	attrErrorCode     attribute.Key = "job.error.code"
	attrRetryDelay    attribute.Key = "job.retry.delay"
	attrResumed       attribute.Key = "job.resumed"
	attrCheckpoints   attribute.Key = "job.checkpoints"
	attrCrashed       attribute.Key = "job.crashed"
	attrReapedBy      attribute.Key = "job.reaped_by"
	attrLink          attribute.Key = "job.link"
	attrGates         attribute.Key = "job.gates"
	attrParked        attribute.Key = "job.parked"
	attrSchedule      attribute.Key = "job.schedule.name"
	attrTick          attribute.Key = "job.schedule.tick"
)

// Attributes lists the names of all attributes.
func Attributes() []attribute.Key {
	return []attribute.Key{
		attrSystem, attrOperation, attrOperationType, attrDestination, attrMessage, attrBodySize,
		attrErrorType, attrException, attrExceptionText, attrExceptionAt,
		attrJob, attrType, attrTenant, attrPriority, attrState, attrReason, attrReplayed, attrDuplicate, attrAttempt, attrMaxAttempts, attrFence,
		attrWorker, attrPlugin, attrPluginVersion, attrOutcome, attrErrorCode, attrRetryDelay, attrResumed, attrCheckpoints,
		attrCrashed, attrReapedBy, attrLink, attrGates, attrParked, attrSchedule, attrTick,
	}
}

// The events of spans.
const (
	// EventCheckpoint: a checkpoint came from the handler.
	EventCheckpoint = "job.checkpoint"
	// EventCancelRequested: the handler was asked to stop because its job was
	// canceled.
	EventCancelRequested = "job.cancel_requested"
	// EventTimedOut: the handler was asked to stop because its time was up.
	EventTimedOut = "job.timed_out"
	// EventLeaseLost: the handler was asked to stop because the lease could not be
	// proven any more.
	EventLeaseLost = "job.lease_lost"
	// EventShutdown: the handler was asked to stop because the worker shuts down.
	EventShutdown = "job.shutdown"
	// EventKilled: the handler did not stop in time, and its process was killed.
	EventKilled = "job.killed"

	eventAdmitted      = "job.admitted"
	eventException     = "exception"
	eventLastHeartbeat = "job.last_heartbeat"
	eventLeaseExpired  = "job.lease_expired"
)

// Events lists the names of all events.
func Events() []string {
	return []string{
		EventCheckpoint, EventCancelRequested, EventTimedOut, EventLeaseLost, EventShutdown, EventKilled,
		eventAdmitted, eventException, eventLastHeartbeat, eventLeaseExpired,
	}
}

// What the attribute job.link says of a link.
const (
	linkRequest  = "request"
	linkPrevious = "previous attempt"
	linkRequeued = "attempt before the requeue"
	linkReaped   = "the attempt as the reaper saw it"
)
