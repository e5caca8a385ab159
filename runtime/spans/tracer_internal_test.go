package spans

import (
	"context"
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/holdfast-jobs/holdfast/runtime/job"
)

func TestAnErrorHasOneKind(t *testing.T) {
	for range 100 {
		kind, text := failure(fmt.Errorf("submit: %w: %w", job.ErrUnavailable, context.DeadlineExceeded))
		require.Equal(t, "unavailable", kind)
		require.Equal(t, job.ErrUnavailable.Error(), text)
	}
	kind, text := failure(fmt.Errorf("the payload: %q", "secret"))
	require.Equal(t, "_OTHER", kind)
	require.NotContains(t, text, "secret")
}
