package transfer

import (
	"os"
	"os/signal"
	"path/filepath"
	"syscall"
	"testing"

	"github.com/stretchr/testify/require"
)

// limitFiles lets no file of the process grow beyond so many bytes, as a full disk would.
func limitFiles(t testing.TB, size uint64) (lift func()) {
	t.Helper()
	signal.Ignore(syscall.SIGXFSZ) // so that write returns an error
	var before syscall.Rlimit
	require.NoError(t, syscall.Getrlimit(syscall.RLIMIT_FSIZE, &before))
	require.NoError(t, syscall.Setrlimit(syscall.RLIMIT_FSIZE, &syscall.Rlimit{Cur: size, Max: before.Max}))
	lift = func() {
		require.NoError(t, syscall.Setrlimit(syscall.RLIMIT_FSIZE, &before))
		signal.Reset(syscall.SIGXFSZ)
	}
	t.Cleanup(lift)
	return lift
}

func TestAFullDiskIsNamedOnceAndTheExportGoesOnWhenThereIsRoom(t *testing.T) {
	source := filled(t, 5000)
	whole := exportTo(t, source)
	path := filepath.Join(t.TempDir(), "ledger.ndjson")
	for _, size := range []uint64{400_000, 1_500_000} { // larger than what else the test writes
		lift := limitFiles(t, size)
		_, err := Export(t.Context(), source, path, unseen)
		lift()
		require.EqualError(t, err, "write "+path+unfinished+": file too large")
	}
	report, err := Export(t.Context(), source, path, unseen)
	require.NoError(t, err)
	require.NotZero(t, report.Resumed)
	want, err := os.ReadFile(whole)
	require.NoError(t, err)
	got, err := os.ReadFile(path)
	require.NoError(t, err)
	require.Equal(t, len(want), len(got))
	require.True(t, string(want) == string(got))
}
