package spans

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/otel/attribute"

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

func TestTheWaitAtGatesIsAPartOfTheQueueWait(t *testing.T) {
	at := time.Now()
	for name, c := range map[string]struct {
		admitted time.Time
		parked   time.Duration
	}{
		"for half of it":                {at.Add(-time.Second), time.Second},
		"admitted before it was due":    {at.Add(-time.Hour), 0},
		"admitted later, by the clocks": {at.Add(time.Hour), 2 * time.Second},
	} {
		t.Run(name, func(t *testing.T) {
			tracer, told := recorded(t)
			one := claimed(at)
			one.Passed = &job.Passed{Gates: gates, AdmittedAt: c.admitted}
			a := tracer.Claimed(&one, "w", at, at)
			a.Began(at)
			wait := told()["queue wait MAIL"]
			require.Subset(t, wait.Attributes, []attribute.KeyValue{
				attrGates.StringSlice([]string{"key:acme/tenant-7", "type:MAIL"}), attrParked.Float64(c.parked.Seconds()),
			})
			require.Len(t, wait.Events, 1)
			require.Equal(t, eventAdmitted, wait.Events[0].Name)
			require.True(t, wait.Events[0].Time.Equal(wait.StartTime.Add(c.parked)))
		})
	}
	tracer, told := recorded(t)
	one := claimed(at)
	tracer.Claimed(&one, "w", at, at).Began(at)
	require.Empty(t, told()["queue wait MAIL"].Events, "a job without gates")
}

var gates = []job.Gate{"key:acme/tenant-7", "type:MAIL"}
