package plugin

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"

	goplugin "github.com/hashicorp/go-plugin"
	"google.golang.org/grpc"

	"github.com/holdfast-jobs/holdfast/plugin/internal/handlerv1"
)

// server is the handler service of this process.
type server struct {
	handlerv1.UnimplementedHandlerServer
	binary binary
	// described is called at the first sign of the orchestrator.
	described func()
	// drained is called when the orchestrator has asked the process to leave
	// and the last outcome is on its way.
	drained func()
	abandon func(why string)
}

// Describe implements the service.
func (s *server) Describe(context.Context, *handlerv1.DescribeRequest) (*handlerv1.DescribeResponse, error) {
	s.described()
	return s.binary.manifest(), nil
}

// Work implements the service.
func (s *server) Work(stream stream) error {
	drained, err := newSession(s.binary.handlers, stream, s.abandon).work()
	if drained {
		s.drained()
	}
	return err
}

func unknownType(_ context.Context, a *attempt) (json.RawMessage, error) {
	return nil, Code(Permanent(fmt.Errorf("this binary has no handler for %s", a.start.GetJobType())), "unknown_type")
}

// registration puts the service on go-plugin's server.
type registration struct {
	goplugin.NetRPCUnsupportedPlugin
	server *server
}

// GRPCServer implements go-plugin's interface.
func (r *registration) GRPCServer(_ *goplugin.GRPCBroker, s *grpc.Server) error {
	handlerv1.RegisterHandlerServer(s, r.server)
	return nil
}

// GRPCClient implements go-plugin's interface; the other end is the
// orchestrator's.
func (r *registration) GRPCClient(context.Context, *goplugin.GRPCBroker, *grpc.ClientConn) (any, error) {
	return nil, errors.New("a handler binary has no client")
}
