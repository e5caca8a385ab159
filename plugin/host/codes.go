package host

import (
	"github.com/holdfast-jobs/holdfast/plugin/host/internal/child"
	"github.com/holdfast-jobs/holdfast/plugin/host/internal/message"
	"github.com/holdfast-jobs/holdfast/runtime/job"
)

// Codes of outcomes that the host itself words.
const (
	// CodeProtocol marks a failure whose cause is an answer that does not
	// follow the protocol.
	CodeProtocol = message.CodeProtocol
	// CodeTooLarge marks an attempt that does not fit into a message.
	CodeTooLarge = message.CodeTooLarge
	// CodeCheckpointTooLarge and CodeResultTooLarge mark an attempt that has
	// reported a value above its cap.
	CodeCheckpointTooLarge = message.CodeCheckpointTooLarge
	CodeResultTooLarge     = message.CodeResultTooLarge
	// CodeCanary marks an attempt that failed on a version on trial, and was
	// given back.
	CodeCanary = message.CodeCanary
	// CodeNoProcess marks an attempt that was given back because no process of
	// its own came up for it.
	CodeNoProcess = job.CodeNoProcess
	// CodeOutOfMemory marks those whose process was killed because it took more
	// memory than its limit, or than the machine had.
	CodeOutOfMemory = string(child.OutOfMemory)
	// CodeTooManyProcesses marks those of one that forked beyond its limit.
	CodeTooManyProcesses = string(child.TooManyProcesses)
	// CodeStalled marks attempts that were given back because we did not run until
	// a lease in their process was nearly over.
	CodeStalled = string(child.Stalled)
)
