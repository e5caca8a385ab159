package api

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/holdfast-jobs/holdfast/runtime/job"
)

func TestOnlyASampledTraceIsLinkedTo(t *testing.T) {
	const parent = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-0"
	for carried, want := range map[string]bool{parent + "1": true, parent + "0": false, parent + "3": true, "": false, "nonsense": false} {
		require.Equal(t, want, spanContextOf(job.Trace{Parent: carried}).IsSampled(), carried)
	}
}
