package spans

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/holdfast-jobs/holdfast/runtime/job"
)

func TestTheWaitsAreExportedOnceWhenTheHandlerBegins(t *testing.T) {
	tracer, told := recorded(t)
	at := time.Now()
	c := claimed(at)
	a := tracer.Claimed(&c, "w", at, at)
	require.Empty(t, told())
	a.Began(at)
	require.Len(t, told(), 2)
	require.True(t, told()["retry wait MAIL"].EndTime.Equal(c.RunAt))
	require.True(t, told()["queue wait MAIL"].StartTime.Equal(c.RunAt))
	require.True(t, told()["queue wait MAIL"].EndTime.Equal(at))
	a.Ended(at)
	a.Settled(settled(job.Success, job.Succeeded), time.Now())
	require.Len(t, told(), 3) // recorded fails when a name comes twice
	require.True(t, told()["process MAIL"].StartTime.Equal(at))
}
