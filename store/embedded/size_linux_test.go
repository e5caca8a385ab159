package embedded

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestTheLimitOfAContainerIsItsMemory(t *testing.T) {
	before := memoryLimits
	defer func() { memoryLimits = before }()
	dir := t.TempDir()
	small, none := filepath.Join(dir, "small"), filepath.Join(dir, "none")
	require.NoError(t, os.WriteFile(small, []byte("300000000\n"), 0o600))
	require.NoError(t, os.WriteFile(none, []byte("max\n"), 0o600))

	memoryLimits = []string{filepath.Join(dir, "missing"), none}
	whole := thisMachine(dir)
	require.Greater(t, whole.memory, uint64(300_000_000))
	require.NotZero(t, whole.disk)
	memoryLimits = []string{none, small}
	require.EqualValues(t, 300_000_000, thisMachine(dir).memory)
}
