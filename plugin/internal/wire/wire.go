// Package wire holds the facts that both ends of the handler protocol must
// agree on and that the .proto file cannot carry.
package wire

import "github.com/hashicorp/go-plugin"

// Version is the protocol's version, negotiated in go-plugin's handshake. It
// is also the number in the package name holdfast.handler.v1; a test compares
// the two.
const Version = 1

// PluginName is the one name in go-plugin's plugin set.
const PluginName = "handler"

// MaxMessageBytes bounds a gRPC message in both directions. gRPC's own limit
// for receiving is 4 MiB, too small for a message that carries several jobs.
const MaxMessageBytes = 64 << 20

// The largest progress, checkpoint and result that an orchestrator takes unless it
// is configured otherwise. It tells the process in DescribeRequest.
const (
	DefaultMaxProgressBytes   = 64 << 10
	DefaultMaxCheckpointBytes = 1 << 20
	DefaultMaxResultBytes     = 1 << 20
)

// MaxSchemaBytes bounds the JSON Schema of a job type.
const MaxSchemaBytes = 256 << 10

// Handshake makes a binary that is run by hand say what it is, instead of
// hanging. It is not a secret.
var Handshake = plugin.HandshakeConfig{
	MagicCookieKey:   "HOLDFAST_HANDLER",
	MagicCookieValue: "holdfast-handler-plugin",
}

// Codes of a Failed outcome that say more than that the handler has failed.
const (
	// CodeTimeout: the attempt's own deadline has passed.
	CodeTimeout = "timeout"
	// CodeLeaseLost: the process has heard of no extension in time and has
	// stopped the attempt by itself. The job is not to blame.
	CodeLeaseLost = "lease_lost"
)
