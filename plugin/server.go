package plugin

import (
	"context"
	"errors"
	"sync"
	"sync/atomic"

	goplugin "github.com/hashicorp/go-plugin"
	"google.golang.org/grpc"

	"github.com/holdfast-jobs/holdfast/plugin/internal/handlerv1"
	"github.com/holdfast-jobs/holdfast/plugin/internal/wire"
)

// server is the handler service of this process, and puts itself on
// go-plugin's server.
type server struct {
	handlerv1.UnimplementedHandlerServer
	goplugin.NetRPCUnsupportedPlugin

	binary binary
	// connected is called once, when the orchestrator is heard of.
	connected func()
	// drained is called when the orchestrator has asked the process to leave
	// and everything is sent.
	drained func()
	// exit ends the process at once.
	exit func(why string)

	first sync.Once
	// caps is what Describe was told last; nil before.
	caps atomic.Pointer[caps]
}

// Describe implements the service.
func (s *server) Describe(_ context.Context, said *handlerv1.DescribeRequest) (*handlerv1.DescribeResponse, error) {
	s.first.Do(s.connected)
	s.caps.Store(new(capsOf(said)))
	return s.binary.manifest(), nil
}

// Work implements the service.
func (s *server) Work(stream stream) error {
	s.first.Do(s.connected)
	known := s.caps.Load()
	if known == nil {
		known = new(capsOf(nil))
	}
	err := newSession(s.binary.handlers, *known, s.exit).work(stream)
	if err == nil {
		s.binary.leave()
		s.drained()
	}
	return err
}

// GRPCServer implements go-plugin's interface.
func (s *server) GRPCServer(_ *goplugin.GRPCBroker, registrar *grpc.Server) error {
	handlerv1.RegisterHandlerServer(registrar, s)
	return nil
}

// GRPCClient implements go-plugin's interface; that end is the orchestrator's.
func (s *server) GRPCClient(context.Context, *goplugin.GRPCBroker, *grpc.ClientConn) (any, error) {
	return nil, errors.New("a handler binary has no client")
}

func newGRPCServer(options []grpc.ServerOption) *grpc.Server {
	return grpc.NewServer(append(options,
		grpc.MaxRecvMsgSize(wire.MaxMessageBytes), grpc.MaxSendMsgSize(wire.MaxMessageBytes))...)
}
