// Package protocol has the constants on which both ends of the plugin protocol must
// agree and which the .proto file cannot state, and what both need to read and write
// the hot messages.
package protocol

// Version is the protocol's version, negotiated in go-plugin's handshake. It
// is also the number in the package name holdfast.handler.v1; a test compares
// the two.
const Version = 1

// PluginName is the one name in go-plugin's plugin set.
const PluginName = "handler"

// The cookie is the variable that tells a plugin that an orchestrator has launched
// it. Run by hand, it says what it is instead of hanging. The cookie is not a
// secret.
const (
	CookieKey   = "HOLDFAST_HANDLER"
	CookieValue = "holdfast-handler-plugin"
)

// HealthService is the name for which grpc.health.v1 answers SERVING.
const HealthService = "plugin"

// MaxMessageBytes bounds a gRPC message in both directions. gRPC's own limit
// for receiving is 4 MiB, too small for a message that carries several jobs.
const MaxMessageBytes = 64 << 20

// The largest progress, checkpoint, result and follow-ups that an orchestrator accepts
// unless it is configured otherwise. DescribeRequest has the numbers in force.
const (
	DefaultMaxProgressBytes   = 64 << 10
	DefaultMaxCheckpointBytes = 1 << 20
	DefaultMaxResultBytes     = 1 << 20
	// Of the follow-ups of an attempt: how many, and how many bytes of JSON together.
	DefaultMaxFollowUps     = 1000
	DefaultMaxFollowUpBytes = 4 << 20
)

// MaxSchemaBytes bounds the JSON Schema of a job type.
const MaxSchemaBytes = 256 << 10

// Codes of a Failed outcome that the orchestrator acts upon.
const (
	// CodeTimeout: the attempt has stopped because its time was up.
	CodeTimeout = "timeout"
	// CodeLeaseLost: the process received no extension in time and stopped the
	// attempt by itself. The job is not to blame.
	CodeLeaseLost = "lease_lost"
)
