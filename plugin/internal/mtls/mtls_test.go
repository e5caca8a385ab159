package mtls

import (
	"net"
	"testing"

	"github.com/stretchr/testify/require"
)

// handshake connects a process and an orchestrator. It returns both errors.
func handshake(t *testing.T, process, orchestrator Identity, trustedPEM, trustedBase64 string) (server, client error) {
	t.Helper()
	listening, err := process.Server(trustedPEM)
	require.NoError(t, err)
	dialing, err := orchestrator.Client(trustedBase64)
	require.NoError(t, err)
	theirs, ours := net.Pipe()
	defer theirs.Close()
	defer ours.Close()
	done := make(chan error, 1)
	go func() {
		conn, _, err := listening.ServerHandshake(theirs)
		if err == nil {
			_, err = conn.Write([]byte("x"))
		}
		_ = theirs.Close()
		done <- err
	}()
	conn, _, client := dialing.ClientHandshake(t.Context(), host, ours)
	if client == nil { // TLS 1.3 tells the client of a refusal with the first read
		_, client = conn.Read(make([]byte, 1))
	}
	_ = ours.Close()
	return <-done, client
}

func TestBothEndsAdmitOnlyEachOther(t *testing.T) {
	process, err := New()
	require.NoError(t, err)
	orchestrator, err := New()
	require.NoError(t, err)
	stranger, err := New()
	require.NoError(t, err)

	server, client := handshake(t, process, orchestrator, orchestrator.PEM(), process.Base64())
	require.NoError(t, client)
	require.NoError(t, server)

	server, client = handshake(t, process, stranger, orchestrator.PEM(), process.Base64())
	require.Error(t, server, "the process refuses another orchestrator")
	require.Error(t, client)

	_, client = handshake(t, stranger, orchestrator, orchestrator.PEM(), process.Base64())
	require.Error(t, client, "the orchestrator refuses another process")
}

func TestACertificateThatCannotBeReadIsRefused(t *testing.T) {
	i, err := New()
	require.NoError(t, err)
	_, err = i.Server("nonsense")
	require.ErrorContains(t, err, "not PEM")
	_, err = i.Client("not base64!")
	require.ErrorContains(t, err, "not base64")
	_, err = i.Client("AAAA")
	require.ErrorContains(t, err, "cannot be read")
}
