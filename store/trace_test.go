package store

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/holdfast-jobs/holdfast/runtime/job"
)

func TestTraceContextAndBaggageAreKept(t *testing.T) {
	s := open(t)
	for _, carried := range []job.Trace{
		{},
		{Parent: "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01"},
		{Parent: "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01", State: "vendor=blue"},
		{Parent: "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01", State: "vendor=blue", Baggage: "customer=ada"},
		{Baggage: "customer=ada"},
	} {
		given(t, s, func(s *job.Submission) { s.Trace = carried })
		c := claim(t, s, 1)[0]
		require.Equal(t, carried, c.Trace)
		detail, err := s.Detail(t.Context(), c.JobID)
		require.NoError(t, err)
		require.Equal(t, carried, detail.Trace)
		expire(t, s, c.Lease)
		require.Equal(t, carried, reap(t, s, 1)[0].Trace)
	}
}
