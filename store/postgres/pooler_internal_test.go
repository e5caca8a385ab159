package postgres

import (
	"testing"

	"github.com/stretchr/testify/require"
)

func TestDatabasesMatchByServerAndName(t *testing.T) {
	require.NoError(t, match(place{1, "a"}, place{1, "a"}))
	require.ErrorContains(t, match(place{1, "a"}, place{1, "b"}), `database.url leads to the database "a" and database.direct_url to "b"`)
	require.ErrorContains(t, match(place{1, "a"}, place{2, "a"}), `different servers (system identifiers 1 and 2)`)
}
