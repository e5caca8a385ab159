package host

import (
	"context"
	"errors"
	"fmt"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/health/grpc_health_v1"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/types/known/emptypb"
)

// healthService is the name that go-plugin gives to the health of a plugin.
const healthService = "plugin"

var errUnread = errors.New("it does not read its stream")

// watchHealth fails the process when it does not answer in time, or answers
// while it leaves its stream unread: work must flow, not only health.
func (p *process) watchHealth() {
	ticks := time.NewTicker(p.gen.settings.HealthPeriod)
	defer ticks.Stop()
	work := p.stream.Context()
	health := grpc_health_v1.NewHealthClient(p.conn)
	for {
		select {
		case <-ticks.C:
		case <-work.Done():
			return
		}
		if err := p.checkHealth(work, health); err != nil && work.Err() == nil {
			p.failHealth(err)
			return
		}
	}
}

// failHealth fails the process, unless a broken connection is the first sign of a
// death, which tells its cause by itself.
func (p *process) failHealth(err error) {
	if status.Code(err) == codes.Unavailable {
		select {
		case <-p.child.Gone():
			return
		case <-time.After(p.gen.settings.ExitWindow):
		}
	}
	p.fail(fmt.Errorf("health check: %w", err))
}

func (p *process) checkHealth(work context.Context, health grpc_health_v1.HealthClient) error {
	ctx, cancel := context.WithTimeout(work, p.gen.settings.HealthTimeout)
	defer cancel()
	answer, err := health.Check(ctx, &grpc_health_v1.HealthCheckRequest{Service: healthService})
	if err != nil {
		return err
	}
	if answer.GetStatus() != grpc_health_v1.HealthCheckResponse_SERVING {
		return fmt.Errorf("it says %s", answer.GetStatus())
	}
	if since := p.sendingSince.Load(); since != 0 && time.Since(time.Unix(0, since)) > p.gen.settings.HealthTimeout {
		return errUnread
	}
	return nil
}

// askToLeave calls go-plugin's controller, which ends the server of a process.
// One that has no controller notices the end of its standard input instead.
func askToLeave(ctx context.Context, conn *grpc.ClientConn) {
	_ = conn.Invoke(ctx, "/plugin.GRPCController/Shutdown", &emptypb.Empty{}, &emptypb.Empty{})
}
