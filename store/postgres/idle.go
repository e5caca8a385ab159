package postgres

import (
	"context"
	"net"
	"syscall"
	"time"

	"github.com/jackc/pgx/v5/pgxpool"
)

// trustedFor is how long a connection may be idle until it is asked whether it still works
// although it looks so.
const trustedFor = 30 * time.Second

// pingUnlessQuiet decides whether a connection that was idle is asked whether it still works
// before its next use. The driver asks after a second, which doubles the round trips of an
// orchestrator that looks for work now and then. But a server or a pooler that ends a connection
// says so: that is seen here without asking. What is not seen is a host that is gone, or
// comes back, without a word: then a statement fails. So this is for callers that try again.
func pingUnlessQuiet(_ context.Context, params pgxpool.ShouldPingParams) bool {
	switch {
	case params.IdleDuration <= time.Second:
		return false
	case params.IdleDuration > trustedFor:
		return true
	}
	return !quiet(params.Conn.PgConn().Conn())
}

// quiet reports whether nothing has come on a connection: no data, and not its end.
func quiet(conn net.Conn) bool {
	if encrypted, ok := conn.(interface{ NetConn() net.Conn }); ok {
		conn = encrypted.NetConn()
	}
	carried, ok := conn.(syscall.Conn)
	if !ok {
		return false
	}
	raw, err := carried.SyscallConn()
	if err != nil {
		return false
	}
	var nothing bool
	err = raw.Read(func(fd uintptr) bool {
		_, _, err := syscall.Recvfrom(int(fd), make([]byte, 1), syscall.MSG_PEEK|syscall.MSG_DONTWAIT)
		nothing = err == syscall.EAGAIN //nolint:errorlint // a system call returns it bare
		return true                     // do not wait
	})
	return err == nil && nothing
}
