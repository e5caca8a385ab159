package postgres

import (
	"testing"

	"github.com/jackc/pgx/v5/pgconn"
	"github.com/stretchr/testify/require"
)

// A pooler that loses the server during a commit cannot know the outcome.
func TestAPoolersAnswerIsNotTheServers(t *testing.T) {
	require.False(t, Answered(&pgconn.PgError{Severity: "FATAL", Code: "08P01", Message: "server conn crashed?"}))
	require.True(t, Answered(&pgconn.PgError{Severity: "ERROR", Code: lockNotAvailable}))
}
