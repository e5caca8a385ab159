package cells

import (
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// The paths with an id stand in the configurations of the proxies, in the command line and in
// the documentation. A route that one of them lacks would be answered 421.
func TestAllKnowThePathsThatHaveAnID(t *testing.T) {
	read := func(path string) string {
		text, err := os.ReadFile(filepath.Join("../..", path))
		require.NoError(t, err)
		return string(text)
	}
	var want []string
	for _, found := range regexp.MustCompile(`(?m)^  /([^\s{]+)/\{id\}[^\s{]*:$`).FindAllStringSubmatch(read("api/openapi.yaml"), -1) {
		want = append(want, found[1])
	}
	slices.Sort(want)
	want = slices.Compact(want)
	require.Contains(t, want, "jobs")
	for path, times := range map[string]int{
		"deploy/cells/nginx.conf": 2, "deploy/cells/ids.map": 4, "cmd/orchestrator/internal/cells/cells.go": 1,
	} {
		found := regexp.MustCompile(`\^/\((?:\?:)?([a-z/|]+)\)/`).FindAllStringSubmatch(read(path), -1)
		require.Len(t, found, times, path)
		for _, one := range found {
			got := strings.Split(one[1], "|")
			slices.Sort(got)
			require.Equal(t, want, got, path)
		}
	}
	documented := read("docs/how-to/cells.md")
	for _, path := range want {
		require.Contains(t, documented, "`/"+path+"/{id}`")
	}
}
