package sdk_test

import (
	"archive/zip"
	"bytes"
	"crypto/sha256"
	"encoding/base64"
	"fmt"
	"io"
	"os"
	"strings"
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

// pip takes the RECORD of a wheel for what it has installed, and removes that.
func TestTheWheelRecordsItsFiles(t *testing.T) {
	wheel, err := sdk.Wheel()
	require.NoError(t, err)
	archive, err := zip.NewReader(bytes.NewReader(wheel.Content), int64(len(wheel.Content)))
	require.NoError(t, err)
	var record, want []string
	for _, entry := range archive.File {
		file, err := archive.Open(entry.Name)
		require.NoError(t, err)
		content, err := io.ReadAll(file)
		require.NoError(t, err)
		if strings.HasSuffix(entry.Name, ".dist-info/RECORD") {
			record = strings.Split(strings.TrimSpace(string(content)), "\n")
			want = append(want, entry.Name+",,")
			continue
		}
		digest := sha256.Sum256(content)
		want = append(want, fmt.Sprintf("%s,sha256=%s,%d", entry.Name, base64.RawURLEncoding.EncodeToString(digest[:]), len(content)))
	}
	require.Equal(t, want, record)
}
