package job_test

import (
	"os"
	"regexp"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/holdfast-jobs/holdfast/runtime/job"
)

// docs/reference/states.md shows the states and transitions of this package, all of
// them and no others.
func TestTheDocumentedStateMachineMatchesTheCode(t *testing.T) {
	document, err := os.ReadFile("../../docs/reference/states.md")
	require.NoError(t, err)

	statuses := make(map[job.State]job.Status)
	for _, row := range regexp.MustCompile("(?m)^\\| `([a-z]+)` \\| `([A-Z]+)` \\|").FindAllSubmatch(document, -1) {
		statuses[job.State(row[1])] = job.Status(row[2])
	}
	require.Len(t, statuses, len(job.States()))
	shown := make(map[[2]job.State]bool)
	for _, row := range regexp.MustCompile("(?m)^\\| `([a-z]+)` \\| `([a-z]+)` \\|").FindAllSubmatch(document, -1) {
		shown[[2]job.State{job.State(row[1]), job.State(row[2])}] = true
	}
	for _, from := range job.States() {
		require.Equal(t, from.Status(), statuses[from], from)
		for _, to := range job.States() {
			require.Equal(t, from.CanBecome(to), shown[[2]job.State{from, to}], "%s to %s", from, to)
		}
	}
}
