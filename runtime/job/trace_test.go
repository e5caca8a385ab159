package job_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/holdfast-jobs/holdfast/runtime/job"
)

func TestTheIDOfATraceIsThatOfItsParent(t *testing.T) {
	const id = "0af7651916cd43dd8448eb211c80319c"
	for parent, want := range map[string]string{
		"00-" + id + "-b7ad6b7169203331-01":    id,
		"cc-" + id + "-b7ad6b7169203331-01-1":  id,
		"":                                     "",
		"00-" + id:                             "",
		"00-" + id[1:] + "-b7ad6b7169203331":   "",
		"00-" + id[1:] + "Z-b7ad6b7169203331-": "",
		"nonsense":                             "",
	} {
		require.Equal(t, want, job.Trace{Parent: parent}.ID(), parent)
	}
}
