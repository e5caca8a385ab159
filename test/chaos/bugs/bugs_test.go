package main

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"
)

// root is that of the checkout.
const root = "../../.."

func TestEveryBugStillAppliesToTheProduct(t *testing.T) {
	all, err := bugs(".")
	require.NoError(t, err)
	require.GreaterOrEqual(t, len(all), 12)
	for _, b := range all {
		t.Run(b.name, func(t *testing.T) {
			dir := t.TempDir()
			changed, err := b.files()
			require.NoError(t, err)
			require.NotEmpty(t, changed)
			before := make(map[string]string)
			for _, name := range changed {
				text, err := os.ReadFile(filepath.Join(root, name))
				require.NoError(t, err)
				before[name] = string(text)
				require.NoError(t, os.MkdirAll(filepath.Join(dir, filepath.Dir(name)), 0o755))
				require.NoError(t, os.WriteFile(filepath.Join(dir, name), text, 0o600))
			}
			require.NoError(t, b.apply(t.Context(), dir))
			for _, name := range changed {
				text, err := os.ReadFile(filepath.Join(dir, name))
				require.NoError(t, err)
				require.NotEqual(t, before[name], string(text), name)
			}
		})
	}
}
