package bench

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"os/exec"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/holdfast-jobs/holdfast/internal/loop"
	"github.com/holdfast-jobs/holdfast/internal/pgbouncer"
	"github.com/holdfast-jobs/holdfast/store/postgres"
)

// poolerWithin is how long a pooler may take to let somebody in.
const poolerWithin = time.Minute

// pooler is a PgBouncer between a fleet and its database. Without one it is nil.
type pooler struct {
	process *exec.Cmd
	// directory has its configuration.
	directory string
	// through is the URL of the fleet's database behind it.
	through string
	// ended is closed when the process has, and said is then what it has said.
	ended chan struct{}
	said  bytes.Buffer
}

// startPooler starts the PgBouncer at a path in front of a database.
func startPooler(ctx context.Context, path, database string) (p *pooler, err error) {
	// PgBouncer keeps its sessions: they must not be older than the settings.
	if _, err := postgres.SetDefaults(ctx, database); err != nil {
		return nil, err
	}
	free, err := new(net.ListenConfig).Listen(ctx, "tcp", "127.0.0.1:0")
	if err != nil {
		return nil, err
	}
	address := free.Addr().String()
	directory, err := os.MkdirTemp("", "holdfast-bench-")
	if err := errors.Join(err, free.Close()); err != nil {
		return nil, err
	}
	defer func() {
		if err != nil {
			_ = os.RemoveAll(directory)
		}
	}()
	made, err := pgbouncer.New(path, directory, address, database, nil)
	if err != nil {
		return nil, err
	}
	p = &pooler{process: made.Process, directory: directory, through: made.URL, ended: make(chan struct{})}
	p.process.Stderr = &p.said
	if err := p.process.Start(); err != nil {
		return nil, err
	}
	go func() {
		_ = p.process.Wait() // a signal ends it, or it has said what is wrong
		close(p.ended)
	}()
	if err := p.await(ctx); err != nil {
		p.stop()
		return nil, fmt.Errorf("PgBouncer did not start: %w\n%s", err, p.said.String())
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
		select {
		case <-p.ended:
			return err
		case <-ctx.Done():
			return err
		default:
			loop.Pause(ctx, glance)
		}
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

// stop ends it, and with it all connections through it.
func (p *pooler) stop() {
	if p == nil {
		return
	}
	_ = p.process.Process.Kill() // it may have ended
	<-p.ended
	_ = os.RemoveAll(p.directory)
}
