package plugin

import (
	"fmt"

	"google.golang.org/grpc"

	"github.com/holdfast-jobs/holdfast/plugin/internal/handlerv1"
	"github.com/holdfast-jobs/holdfast/plugin/internal/inprocess"
)

func init() { inprocess.NewServer = newInProcessServer }

// newInProcessServer is for package plugintest. What belongs to a process of
// its own is left out: streams, signals, standard input, go-plugin.
func newInProcessServer(parts []any, process inprocess.Process, options ...grpc.ServerOption) (*grpc.Server, error) {
	typed := make([]Part, 0, len(parts))
	for _, part := range parts {
		known, ok := part.(Part)
		if !ok {
			return nil, fmt.Errorf("%T is not a plugin.Part", part)
		}
		typed = append(typed, known)
	}
	b, err := assemble(typed)
	if err != nil {
		return nil, err
	}
	s := newGRPCServer(options)
	handlerv1.RegisterHandlerServer(s, &server{
		binary: b, connected: func() {}, drained: process.Drained, exit: process.Exit,
	})
	return s, nil
}
