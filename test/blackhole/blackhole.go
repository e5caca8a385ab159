// Package blackhole is a server for tests that takes connections, and neither
// reads from them nor answers.
package blackhole

import (
	"net"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"
)

// Listen returns the address of one on loopback, host and port, which ends with
// the test.
func Listen(t testing.TB) string {
	t.Helper()
	listener, err := new(net.ListenConfig).Listen(t.Context(), "tcp", "127.0.0.1:0")
	require.NoError(t, err)
	var accepting sync.WaitGroup
	accepting.Go(func() {
		for {
			connection, err := listener.Accept()
			if err != nil {
				return
			}
			defer func() { _ = connection.Close() }()
		}
	})
	t.Cleanup(func() {
		_ = listener.Close()
		accepting.Wait()
	})
	return listener.Addr().String()
}
