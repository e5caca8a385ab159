// Package inprocess lets package plugintest serve handlers in a test's process with the
// code of package plugin. It is not part of the SDK's API.
package inprocess

import "google.golang.org/grpc"

// Process stands in for the plugin process.
type Process struct {
	// Exit is called when the process would exit at once.
	Exit func(why string)
	// Drained is called when everything is sent after a drain.
	Drained func()
}

// NewServer makes a server of the handler service for the parts, each of which
// is a plugin.Part. Its error is the one that plugin.Serve would print. Package
// plugin sets it.
var NewServer func(parts []any, process Process, options ...grpc.ServerOption) (*grpc.Server, error)
