package plugin

import (
	"context"
	"fmt"
	"sync/atomic"

	"google.golang.org/grpc"

	"github.com/holdfast-jobs/holdfast/plugin/internal/handlerv1"
	"github.com/holdfast-jobs/holdfast/plugin/internal/inprocess"
	"github.com/holdfast-jobs/holdfast/plugin/internal/protocol"
)

// server is the handler service of this process.
type server struct {
	handlerv1.UnimplementedHandlerServer

	binary binary
	// drained is called when the orchestrator has asked the process to drain and
	// everything is sent.
	drained func()
	// exit ends the process at once.
	exit func(why string)
	// limits are those of the last Describe; nil before the first.
	limits atomic.Pointer[valueLimits]
}

func newServer(service *server, options ...grpc.ServerOption) *grpc.Server {
	s := grpc.NewServer(append(options, grpc.ForceServerCodecV2(newCodec()),
		grpc.MaxRecvMsgSize(protocol.MaxMessageBytes), grpc.MaxSendMsgSize(protocol.MaxMessageBytes))...)
	handlerv1.RegisterHandlerServer(s, service)
	return s
}

// Describe implements the service.
func (s *server) Describe(_ context.Context, sent *handlerv1.DescribeRequest) (*handlerv1.DescribeResponse, error) {
	s.limits.Store(new(limitsOf(sent)))
	return s.binary.manifest(), nil
}

// Work implements the service.
func (s *server) Work(stream stream) error {
	limits := s.limits.Load()
	if limits == nil {
		limits = new(limitsOf(nil))
	}
	err := newSession(s.binary.handlers, *limits, s.exit).work(stream)
	if err == nil {
		s.binary.leave()
		s.drained()
	}
	return err
}

func init() { inprocess.NewServer = newInProcessServer }

// newInProcessServer is for package plugintest. It leaves out what belongs to a
// process: handshake, signals, standard input.
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
	return newServer(&server{binary: b, drained: process.Drained, exit: process.Exit}, options...), nil
}
