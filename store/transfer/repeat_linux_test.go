package transfer

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/holdfast-jobs/holdfast/test/pgtest"
)

// The memory of a process is a regular file, whose first byte nobody can read, not even root.
func TestAnExportSaysOfAFileThatItCannotBeRead(t *testing.T) {
	const path = "/proc/self/mem"
	source := pgtest.URL(t)
	_, err := Export(t.Context(), source, path, unseen)
	require.ErrorContains(t, err, path+" exists, and cannot be read ("+path+", line 1: read ")
	require.ErrorContains(t, err, "name a new file")
	require.NotContains(t, err.Error(), "no complete export")
}
