// Package inprocess is the door by which the test kit serves handlers within a
// test's own process, with the code that serves them to an orchestrator. The
// authors of handlers do not see it.
package inprocess

import "google.golang.org/grpc"

// Process is what stands in for the process of the handlers.
type Process struct {
	// Exit is called where the process would end at once.
	Exit func(why string)
	// Drained is called when everything is done and sent after a drain.
	Drained func()
}

// NewServer makes a server of the handler service for the parts, each of which
// is a plugin.Part. Its error is the one that plugin.Serve would print. Package
// plugin sets it.
var NewServer func(parts []any, process Process, options ...grpc.ServerOption) (*grpc.Server, error)
