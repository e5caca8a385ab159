package store

import (
	"context"
	"errors"
	"net"
	"sync/atomic"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
)

// session is what the store knows of one connection.
type session struct {
	connected atomic.Bool
	// writing keeps cancel requests from being sent.
	writing atomic.Bool
	// unreplicated says that a commit did not wait for the standby. It belongs to
	// whoever uses the connection.
	unreplicated bool
}

// sessionKey is where a connection keeps its session.
const sessionKey = "holdfast"

// waitForStandby is the server's function that waits for a standby. It warns when
// the wait is canceled. Unlike the words of a warning, its origin is not
// translated.
const waitForStandby = "SyncRepWaitForLSN"

// errNoCancel keeps the driver from canceling a write.
var errNoCancel = errors.New("a write is not canceled")

// newSession is called with the configuration of each new connection.
//
// The driver asks the server to cancel what a connection was doing whenever the
// connection breaks. It dials for that as it has dialed for the connection, which
// is where it can be kept from it.
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
	return conn.PgConn().CustomData()[sessionKey].(*session) //nolint:forcetypeassert // newSession has put it there
}

func (s *session) begin() {
	s.unreplicated = false
	s.writing.Store(true)
}

// end leaves a broken connection as it is: the driver may be about to cancel.
func (s *session) end(conn *pgx.Conn) {
	if !conn.IsClosed() {
		s.writing.Store(false)
	}
}
