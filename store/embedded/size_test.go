package embedded

import (
	"os"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestTheServerTakesAShareOfTheMachine(t *testing.T) {
	const gibibyte = 1 << 30
	for name, c := range map[string]struct {
		machine
		buffers, log string
	}{
		"unknown":        {machine{}, "", ""},
		"very small":     {machine{gibibyte / 4, gibibyte}, "128MB", "256MB"},
		"small":          {machine{gibibyte, 10 * gibibyte}, "256MB", "1024MB"},
		"of medium size": {machine{2 * gibibyte, 16 * gibibyte}, "512MB", "1638MB"},
		"large":          {machine{64 * gibibyte, 1000 * gibibyte}, "512MB", "2048MB"},
	} {
		t.Run(name, func(t *testing.T) {
			fitted := c.settings()
			require.Equal(t, c.buffers, fitted["shared_buffers"])
			require.Equal(t, c.log, fitted["max_wal_size"])
		})
	}
}

func TestTheServerIsFittedToItsMachine(t *testing.T) {
	dir := tempDir(t)
	server := begin(t, Config{DataDir: dir})
	fitted := thisMachine(dir).settings()
	for name, value := range fitted {
		require.Equal(t, "t", query(t, server, "select (pg_size_bytes(current_setting('"+name+"')) = pg_size_bytes('"+value+"'))::text::char"), name)
	}
	// Compressed by the best method of this build, or not at all.
	known := query(t, server, "select coalesce('lz4' = any (enumvals), false)::text from pg_settings where name = 'wal_compression'")
	require.Equal(t, map[string]string{"true": "lz4", "false": "off"}[known], query(t, server, "show wal_compression"))
}

func TestImportantSettingsAreDocumented(t *testing.T) {
	if _, err := os.Stat("size_test.go"); err != nil {
		t.Skip("the sources are elsewhere, as they are for the ordinary user")
	}
	text, err := os.ReadFile("../../docs/how-to/postgresql.md")
	require.NoError(t, err)
	page, _, _ := strings.Cut(string(text), "## A server of your own")
	for _, name := range []string{"checkpoint_timeout", "wal_buffers", "autovacuum_naptime", "jit", "max_connections"} {
		require.Contains(t, page, "| `"+name+"` | `"+settings[name]+"` |")
	}
}
