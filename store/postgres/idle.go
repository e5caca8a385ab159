package postgres

import (
	"context"
	"crypto/tls"
	"errors"
	"net"
	"syscall"
	"time"

	"github.com/jackc/pgx/v5/pgxpool"
	"golang.org/x/sys/unix"
)

const (
	// checkAfter is how long a connection was idle if it is worth a look before it is used.
	checkAfter = time.Second
	// pingAfter is how long it was idle if its server must answer before it is used: something
	// between them may have forgotten it without a word.
	pingAfter = time.Minute
)

// mustPing reports whether to ask the server for a sign of life before the connection is used.
// To ask whenever it was idle for a second, as the driver would, wakes a process of the server
// twice for each statement of an idle orchestrator.
func mustPing(_ context.Context, p pgxpool.ShouldPingParams) bool {
	return p.IdleDuration > checkAfter && (p.IdleDuration > pingAfter || !silent(p.Conn.PgConn().Conn()))
}

// silent reports whether nothing is there to read: neither the end of the connection nor what a
// server says before it.
func silent(conn net.Conn) bool {
	if encrypted, ok := conn.(*tls.Conn); ok {
		conn = encrypted.NetConn()
	}
	socket, ok := conn.(syscall.Conn)
	if !ok {
		return false
	}
	raw, err := socket.SyscallConn()
	if err != nil {
		return false
	}
	var read error
	// Not as a read, which would wait for one of the driver's that is under way.
	err = raw.Control(func(file uintptr) {
		_, _, read = unix.Recvfrom(int(file), make([]byte, 1), unix.MSG_PEEK|unix.MSG_DONTWAIT)
	})
	return err == nil && errors.Is(read, unix.EAGAIN)
}
