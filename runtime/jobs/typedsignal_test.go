package jobs_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/holdfast-jobs/holdfast/runtime/jobs"
)

func TestATypedSignalGathersWhatItIsAbout(t *testing.T) {
	s := jobs.NewTypedSignal()
	require.Empty(t, s.Woken())
	require.Equal(t, []string{}, s.Take(), "nothing is not anything")

	s.Raise([]string{"B"})
	s.Raise([]string{"A", "B"})
	require.Len(t, s.Woken(), 1)
	require.Equal(t, []string{"A", "B"}, s.Take())
	require.Empty(t, s.Woken(), "nothing is left that it could be about")
	require.Equal(t, []string{}, s.Take())

	s.Raise([]string{"A"})
	s.Raise(nil)
	s.Raise([]string{"B"})
	require.Nil(t, s.Take(), "any type")
	require.Equal(t, []string{}, s.Take())
}
