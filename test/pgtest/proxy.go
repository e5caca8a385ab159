package pgtest

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/holdfast-jobs/holdfast/test/pgproxy"
)

// Proxy is a pgproxy.Proxy that ends with its test.
type Proxy struct{ *pgproxy.Proxy }

// Between returns a proxy in front of the database.
func Between(t testing.TB, database string) *Proxy {
	t.Helper()
	p, err := pgproxy.Listen(t.Context(), database)
	require.NoError(t, err)
	t.Cleanup(p.Close)
	return &Proxy{Proxy: p}
}

// Lead sends new connections to the server of another database address. Open
// connections stay where they are.
func (p *Proxy) Lead(t testing.TB, database string) {
	t.Helper()
	require.NoError(t, p.Proxy.Lead(database))
}
