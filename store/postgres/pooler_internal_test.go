package postgres

import (
	"testing"

	"github.com/stretchr/testify/require"
)

func TestDatabasesMatchByServerNameAndUser(t *testing.T) {
	here := Server{Cluster: 1, Database: "a", User: "u", Timeline: 2}
	require.NoError(t, match(here, Server{Cluster: 1, Database: "a", User: "u"}), "a standby of the same")
	require.ErrorContains(t, match(here, Server{Cluster: 1, Database: "b"}), `database.url leads to the database "a" and database.direct_url to "b"`)
	require.ErrorContains(t, match(here, Server{Cluster: 2, Database: "a"}), `different servers (system identifiers 1 and 2)`)
	require.ErrorContains(t, match(here, Server{Cluster: 1, Database: "a", User: "v"}), `as the user "u" and database.direct_url as "v"`)
}
