package postgres

import (
	"net"
	"testing"

	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/pgproto3"
	"github.com/stretchr/testify/require"

	"github.com/holdfast-jobs/holdfast/runtime/job"
)

// A pooler that loses the server during a commit cannot know the outcome.
func TestAPoolersAnswerIsNotTheServers(t *testing.T) {
	require.False(t, Answered(&pgconn.PgError{Severity: "FATAL", Code: "08P01", Message: "server conn crashed?"}))
	require.True(t, Answered(&pgconn.PgError{Severity: "ERROR", Code: lockNotAvailable}))
}

// Seen on a full disk: "could not write init file". Orchestrators that were starting ended.
func TestASessionThatCannotStartMayStartLater(t *testing.T) {
	_, err := pgconn.Connect(t.Context(), refusing(t, internalError))
	require.ErrorIs(t, Translate("register worker", err), job.ErrUnavailable)
	_, err = pgconn.Connect(t.Context(), refusing(t, "28P01"))
	require.Error(t, err)
	require.NotErrorIs(t, Translate("register worker", err), job.ErrUnavailable, "a wrong password stays wrong")
	require.NotErrorIs(t, Translate("claim", &pgconn.PgError{Code: internalError}), job.ErrUnavailable, "a statement may fail so for ever")
}

// refusing returns the URL of a server that refuses its first session with the code.
func refusing(t *testing.T, code string) string {
	t.Helper()
	listener, err := new(net.ListenConfig).Listen(t.Context(), "tcp", "127.0.0.1:0")
	require.NoError(t, err)
	done := make(chan struct{})
	go func() {
		defer close(done)
		conn, err := listener.Accept()
		if err != nil {
			return
		}
		defer conn.Close()
		server := pgproto3.NewBackend(conn, conn)
		if _, err := server.ReceiveStartupMessage(); err == nil {
			server.Send(&pgproto3.ErrorResponse{Severity: "FATAL", Code: code, Message: "it cannot start"})
			_ = server.Flush()
		}
	}()
	t.Cleanup(func() {
		_ = listener.Close()
		<-done
	})
	return "postgres://holdfast@" + listener.Addr().String() + "/holdfast?sslmode=disable"
}
