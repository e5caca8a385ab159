package postgres

import (
	"net"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/stretchr/testify/require"

	"github.com/holdfast-jobs/holdfast/test/pgtest"
)

func TestAnIdleConnectionIsAskedOnlyWhenItMayBeGone(t *testing.T) {
	url := pgtest.EmptyURL(t)
	idle, err := pgx.Connect(t.Context(), url)
	require.NoError(t, err)
	t.Cleanup(func() { _ = idle.Close(t.Context()) })
	asked := func(after time.Duration) bool {
		return pingUnlessQuiet(t.Context(), pgxpool.ShouldPingParams{Conn: idle, IdleDuration: after})
	}
	require.False(t, asked(2*time.Second))
	require.True(t, asked(trustedFor+1), "a host that is gone says nothing")

	other, err := pgx.Connect(t.Context(), url)
	require.NoError(t, err)
	t.Cleanup(func() { _ = other.Close(t.Context()) })
	var ended bool
	require.NoError(t, other.QueryRow(t.Context(), "select pg_terminate_backend($1, 10000)", idle.PgConn().PID()).Scan(&ended))
	require.True(t, ended)
	require.True(t, asked(2*time.Second), "the server has said that it ends it")
	require.False(t, asked(time.Second), "it was in use just now")
}

// encrypted is a connection on top of another one, as that of TLS is.
type encrypted struct{ net.Conn }

func (e encrypted) NetConn() net.Conn { return e.Conn }

func TestAConnectionIsQuietUntilSomethingComes(t *testing.T) {
	listener, err := net.Listen("tcp", "127.0.0.1:0") //nolint:noctx // it is closed below
	require.NoError(t, err)
	defer func() { _ = listener.Close() }()
	here, err := net.Dial("tcp", listener.Addr().String()) //nolint:noctx // on the loopback
	require.NoError(t, err)
	defer func() { _ = here.Close() }()
	there, err := listener.Accept()
	require.NoError(t, err)
	require.True(t, quiet(encrypted{here}))
	require.NoError(t, there.Close())
	_, err = here.Read(make([]byte, 1)) // it returns when the end has come
	require.Error(t, err)
	require.False(t, quiet(encrypted{here}))
	unknown, _ := net.Pipe()
	require.False(t, quiet(unknown), "it is not known to be quiet")
}
