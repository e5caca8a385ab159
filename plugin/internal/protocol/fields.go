package protocol

// The fields of a Start, by their numbers in handler.proto.
const (
	StartHandle = iota + 1
	StartJobID
	StartJobType
	StartTenant
	StartPayload
	StartAttempt
	StartMaxAttempts
	StartFence
	StartTimeout
	StartLease
	StartCheckpoint
	StartTraceParent
	StartTraceState
	StartCreatedAt
	StartBaggage
	StartPredecessors
)

// The fields of a WorkRequest with starts, of a WorkResponse with outcomes, and those of an outcome
// that is a success.
const (
	RequestStarts    = 1
	ResponseOutcomes = 1
	OutcomeHandle    = 1
	OutcomeSucceeded = 2
	SucceededResult  = 1
)
