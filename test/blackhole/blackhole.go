// Package blackhole is a server for tests that neither reads nor answers.
package blackhole

import (
	"net"
	"testing"

	"github.com/stretchr/testify/require"
)

// Listen returns the host and port of a server on the loopback, until the end of the
// test. The kernel completes connections, and nothing accepts them.
func Listen(t testing.TB) string {
	t.Helper()
	listener, err := new(net.ListenConfig).Listen(t.Context(), "tcp", "127.0.0.1:0")
	require.NoError(t, err)
	t.Cleanup(func() { _ = listener.Close() })
	return listener.Addr().String()
}
