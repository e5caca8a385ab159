package pgbouncer_test

import (
	"os"
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/holdfast-jobs/holdfast/internal/pgbouncer"
)

func TestTheSettingsAreThoseOfTheDocumentation(t *testing.T) {
	page, err := os.ReadFile("../../docs/how-to/postgresql.md")
	require.NoError(t, err)
	section := regexp.MustCompile(`(?s)\n *\[pgbouncer\]\n(.*?)` + "```").FindSubmatch(page)
	require.NotNil(t, section)
	shown := make(map[string]string)
	for line := range strings.Lines(string(section[1])) {
		if key, value, found := strings.Cut(line, "="); found {
			shown[strings.TrimSpace(key)] = strings.TrimSpace(value)
		}
	}
	for _, own := range []string{"listen_addr", "listen_port", "auth_type", "auth_file"} {
		require.Contains(t, shown, own)
		delete(shown, own)
	}
	require.Equal(t, shown, pgbouncer.Documented())
}
