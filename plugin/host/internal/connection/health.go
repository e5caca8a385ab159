package connection

import (
	"context"
	"errors"
	"fmt"
	"time"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/health/grpc_health_v1"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/types/known/emptypb"
)

// healthService is go-plugin's name for the health of a plugin.
const healthService = "plugin"

// watchHealth fails the process if it does not answer in time, or answers but does not
// read its stream.
func (p *Process) watchHealth() {
	ticks := time.NewTicker(p.spec.Settings.HealthPeriod)
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

// failHealth fails the process. If the connection is broken, it first waits briefly for
// the process to die, because a death explains more.
func (p *Process) failHealth(err error) {
	if status.Code(err) == codes.Unavailable {
		select {
		case <-p.child.Gone():
			return
		case <-time.After(p.spec.Settings.ExitWindow):
		}
	}
	p.fail(fmt.Errorf("health check: %w", err))
}

func (p *Process) checkHealth(work context.Context, health grpc_health_v1.HealthClient) error {
	ctx, cancel := context.WithTimeout(work, p.spec.Settings.HealthTimeout)
	defer cancel()
	answer, err := health.Check(ctx, &grpc_health_v1.HealthCheckRequest{Service: healthService})
	if err != nil {
		return err
	}
	if answer.GetStatus() != grpc_health_v1.HealthCheckResponse_SERVING {
		return fmt.Errorf("its status is %s", answer.GetStatus())
	}
	if since := p.sendingSince.Load(); since != 0 && time.Since(time.Unix(0, since)) > p.spec.Settings.HealthTimeout {
		return errors.New("it does not read its stream")
	}
	return nil
}

// askToLeave asks a process without work to exit, and gives it time. A process that
// uses go-plugin has a controller, which ends its server. Any other process notices the
// end of its standard input.
func (p *Process) askToLeave() {
	ctx, cancel := context.WithTimeout(p.spec.Killing, p.spec.Settings.KillGrace)
	defer cancel()
	_ = p.conn.Invoke(ctx, "/plugin.GRPCController/Shutdown", &emptypb.Empty{}, &emptypb.Empty{})
	p.child.CloseStdin()
	select {
	case <-p.child.Gone():
	case <-ctx.Done():
	}
}
