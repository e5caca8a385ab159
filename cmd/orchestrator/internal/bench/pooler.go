package bench

import (
	"context"
	"errors"
	"net"
	"os"
	"os/exec"
	"syscall"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/holdfast-jobs/holdfast/internal/loop"
	"github.com/holdfast-jobs/holdfast/internal/pgbouncer"
)

// poolerWithin is how long a pooler may take to let somebody in, and to end.
const poolerWithin = time.Minute

// pooler is a PgBouncer between a fleet and its database. Without one it is nil.
type pooler struct {
	process *exec.Cmd
	// directory has its configuration.
	directory string
	// through is the URL of the fleet's database behind it.
	through string
	ended   chan error
}

// startPooler starts one in front of the database of the run.
func (r *run) startPooler(ctx context.Context) (p *pooler, err error) {
	path, err := pgbouncer.Find()
	if err != nil {
		return nil, err
	}
	directory, err := os.MkdirTemp("", "holdfast-bench-")
	if err != nil {
		return nil, err
	}
	defer func() {
		if err != nil {
			_ = os.RemoveAll(directory)
		}
	}()
	free, err := new(net.ListenConfig).Listen(ctx, "tcp", "127.0.0.1:0")
	if err != nil {
		return nil, err
	}
	address := free.Addr().String()
	if err := free.Close(); err != nil {
		return nil, err
	}
	made, err := pgbouncer.New(path, directory, address, r.db.address, nil)
	if err != nil {
		return nil, err
	}
	p = &pooler{process: made.Process, directory: directory, through: made.URL(r.db.name), ended: make(chan error, 1)}
	if err := p.process.Start(); err != nil {
		return nil, err
	}
	go func() { p.ended <- p.process.Wait() }()
	if err := p.await(ctx); err != nil {
		return nil, errors.Join(err, p.stop())
	}
	return p, nil
}

// await returns when the database answers through the pooler.
func (p *pooler) await(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, poolerWithin)
	defer cancel()
	for {
		conn, err := pgx.Connect(ctx, p.through)
		if err == nil {
			return conn.Close(ctx)
		}
		if ctx.Err() != nil {
			return err
		}
		loop.Pause(ctx, glance)
	}
}

// used is the processor time that it has used.
func (p *pooler) used() (time.Duration, error) {
	if p == nil {
		return 0, nil
	}
	of, err := usageOf(p.process.Process.Pid)
	return of.own, err
}

func (p *pooler) stop() error {
	if p == nil {
		return nil
	}
	defer func() { _ = os.RemoveAll(p.directory) }()
	if err := p.process.Process.Signal(syscall.SIGINT); err != nil { // it waits for nobody
		return err
	}
	select {
	case <-p.ended: //nolint:errcheck // a signal ended it
		return nil
	case <-time.After(poolerWithin):
		return errors.Join(errors.New("PgBouncer did not stop"), p.process.Process.Kill())
	}
}
