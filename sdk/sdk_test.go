package sdk_test

import (
	"os"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/holdfast-jobs/holdfast/sdk"
)

func TestThePackagesCarryTheLicense(t *testing.T) {
	want, err := os.ReadFile("../LICENSE")
	require.NoError(t, err)
	for _, path := range []string{"python/LICENSE", "node/LICENSE"} {
		license, err := os.ReadFile(path)
		require.NoError(t, err)
		require.Equal(t, string(want), string(license), path)
	}
}

func TestTheSameSourcesMakeTheSameBytes(t *testing.T) {
	for name, pack := range map[string]func() (sdk.Package, error){
		"holdfast_jobs-0.1.0-py3-none-any.whl": sdk.Wheel,
		"holdfast-jobs-holdfast-0.1.0.tgz":     sdk.Tarball,
	} {
		first, err := pack()
		require.NoError(t, err)
		second, err := pack()
		require.NoError(t, err)
		require.Equal(t, name, first.Name)
		require.Equal(t, first, second)
	}
}
