package postgres

import (
	"testing"

	"github.com/stretchr/testify/require"
)

func TestDatabasesMatchByServerAndName(t *testing.T) {
	here := Server{Cluster: 1, Database: "a", Timeline: 2}
	require.NoError(t, match(here, Server{Cluster: 1, Database: "a"}), "a standby of the same")
	require.ErrorContains(t, match(here, Server{Cluster: 1, Database: "b"}), `database.url leads to the database "a" and database.direct_url to "b"`)
	require.ErrorContains(t, match(here, Server{Cluster: 2, Database: "a"}), `different servers (system identifiers 1 and 2)`)
}
