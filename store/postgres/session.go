package postgres

import (
	"context"
	"errors"
	"net"
	"sync/atomic"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
)

// session is what we know about one connection.
type session struct {
	connected atomic.Bool
	// writing stops the driver from sending cancel requests.
	writing atomic.Bool
	// unreplicated says that a commit did not wait for the standby. Only the
	// goroutine that uses the connection may read it.
	unreplicated bool
}

// sessionKey is where a connection keeps its session.
const sessionKey = "holdfast"

// waitForStandby is the server's function that waits for a standby. It warns when the
// wait is canceled. The server translates the text of a warning, but not the function
// name that comes with it.
const waitForStandby = "SyncRepWaitForLSN"

// errNoCancel stops the driver from canceling a write.
var errNoCancel = errors.New("a write is not canceled")

// newSession is called with the configuration of each new connection.
//
// When a connection breaks, the driver asks the server to cancel what the
// connection was doing. It sends that request over a new connection, so the
// dial function is the place to refuse it.
func newSession(_ context.Context, cfg *pgx.ConnConfig) error {
	s := &session{}
	dial := cfg.DialFunc
	cfg.DialFunc = func(ctx context.Context, network, address string) (net.Conn, error) {
		if s.connected.Load() && s.writing.Load() {
			return nil, errNoCancel
		}
		return dial(ctx, network, address)
	}
	cfg.AfterConnect = func(_ context.Context, conn *pgconn.PgConn) error {
		conn.CustomData()[sessionKey] = s
		s.connected.Store(true)
		return nil
	}
	cfg.OnNotice = func(_ *pgconn.PgConn, notice *pgconn.Notice) {
		if notice.Routine == waitForStandby {
			s.unreplicated = true
		}
	}
	return nil
}

func sessionOf(conn *pgx.Conn) *session {
	return conn.PgConn().CustomData()[sessionKey].(*session) //nolint:forcetypeassert // newSession put it there
}

func (s *session) begin() {
	s.unreplicated = false
	s.writing.Store(true)
}

// end does not unlock a broken connection, which the driver may be about to cancel.
func (s *session) end(conn *pgx.Conn) {
	if !conn.IsClosed() {
		s.writing.Store(false)
	}
}
