package postgres

import (
	"net"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/stretchr/testify/require"

	"github.com/holdfast-jobs/holdfast/test/pgtest"
)

func TestAnIdleConnectionIsLookedAtBeforeItIsUsed(t *testing.T) {
	db, err := Open(t.Context(), Config{URL: pgtest.EmptyURL(t), MaxConnections: 4})
	require.NoError(t, err)
	t.Cleanup(db.Close)
	conn, err := db.Worker.Acquire(t.Context())
	require.NoError(t, err)
	t.Cleanup(conn.Release)
	after := func(idle time.Duration) bool {
		return mustPing(t.Context(), pgxpool.ShouldPingParams{Conn: conn.Conn(), IdleDuration: idle})
	}
	require.False(t, after(0))
	require.False(t, after(10*time.Second), "it is silent")
	require.True(t, after(2*time.Minute), "whoever is between may have forgotten it")

	_, err = db.Reads.Exec(t.Context(), "select pg_terminate_backend($1)", conn.Conn().PgConn().PID())
	require.NoError(t, err)
	require.Eventually(t, func() bool { return after(10 * time.Second) }, 2*time.Minute, 10*time.Millisecond, "the server says farewell")
	require.False(t, after(0), "it was used just now")
}

func TestAConnectionIsSilentUntilTheOtherEndSaysSomething(t *testing.T) {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, listener.Close()) })
	here, err := net.Dial("tcp", listener.Addr().String())
	require.NoError(t, err)
	there, err := listener.Accept()
	require.NoError(t, err)
	require.True(t, silent(here))
	raw, err := here.(syscall.Conn).SyscallConn()
	require.NoError(t, err)
	began := make(chan struct{})
	var reading sync.WaitGroup
	reading.Go(func() {
		looks := 0
		_ = raw.Read(func(uintptr) bool {
			if looks++; looks == 1 {
				close(began)
			}
			return looks > 1 // until something is there to read
		})
	})
	<-began
	require.True(t, silent(here), "while somebody reads")
	require.NoError(t, there.Close())
	require.Eventually(t, func() bool { return !silent(here) }, 2*time.Minute, time.Millisecond)
	reading.Wait()
	require.NoError(t, here.Close())
	require.False(t, silent(here), "it is closed")
	one, other := net.Pipe()
	require.False(t, silent(one), "nobody can tell")
	require.NoError(t, one.Close())
	require.NoError(t, other.Close())
}
