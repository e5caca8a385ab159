package cgroup

import (
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestAMeterReadsWhatIsTrueAtEachLook(t *testing.T) {
	group := At(t.TempDir())
	meter := group.Meter()
	defer meter.Close()
	_, err := meter.Tasks()
	require.ErrorIs(t, err, fs.ErrNotExist)
	put := func(file, text string) {
		t.Helper()
		require.NoError(t, os.WriteFile(filepath.Join(group.Path(), file), []byte(text), 0o600))
	}
	for _, tasks := range []int{0, 1, 7, 585, 586, 5000, 2} { // of 7 bytes: 586 are more than the buffer
		put("cgroup.threads", strings.Repeat("123456\n", tasks))
		for range 2 {
			got, err := meter.Tasks()
			require.NoError(t, err)
			require.EqualValues(t, tasks, got)
		}
	}
	for text, refused := range map[string]int{"": 0, "max 12\n": 12, "max_imposed 3\nmax 4": 4, "max x\n": 0} {
		put("pids.events", text)
		require.EqualValues(t, refused, meter.Refused(), text)
	}
}

func TestALookOpensAndAllocatesNothing(t *testing.T) {
	group := At(t.TempDir())
	require.NoError(t, os.WriteFile(filepath.Join(group.Path(), "cgroup.threads"), []byte("1\n2\n"), 0o600))
	require.NoError(t, os.WriteFile(filepath.Join(group.Path(), "pids.events"), []byte("max 3\n"), 0o600))
	meter := group.Meter()
	defer meter.Close()
	require.Zero(t, testing.AllocsPerRun(100, func() {
		tasks, err := meter.Tasks()
		if err != nil || tasks != 2 || meter.Refused() != 3 {
			t.Error("2 tasks and 3 refused forks are there: ", tasks, err)
		}
	}))
}
