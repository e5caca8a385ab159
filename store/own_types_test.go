package store

import (
	"errors"
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"
	"golang.org/x/sync/errgroup"

	"github.com/holdfast-jobs/holdfast/runtime/job"
)

func TestAJobTypeBelongsToThePluginThatOwnedItFirst(t *testing.T) {
	s := open(t)
	require.NoError(t, s.OwnTypes(t.Context(), "good", []string{"B", "A"}, nil))
	require.NoError(t, s.OwnTypes(t.Context(), "good", []string{"A", "B"}, nil), "again")

	err := s.OwnTypes(t.Context(), "evil", []string{"B", "NEW"}, nil)
	require.Equal(t, &job.TypeOwnedError{Type: "B", Plugin: "good"}, err)
	require.NoError(t, s.OwnTypes(t.Context(), "other", []string{"NEW"}, nil), "a claim that is refused takes nothing")

	require.NoError(t, s.OwnTypes(t.Context(), "heir", []string{"B", "SPARE"}, []string{"B"}))
	require.Equal(t, &job.TypeOwnedError{Type: "B", Plugin: "heir"}, s.OwnTypes(t.Context(), "good", []string{"A", "B"}, nil))
	require.NoError(t, s.OwnTypes(t.Context(), "good", []string{"A"}, nil), "what was not moved stays")
	require.Equal(t, &job.TypeOwnedError{Type: "A", Plugin: "good"}, s.OwnTypes(t.Context(), "heir", []string{"A"}, []string{"B"}))
}

func TestOneOfManyPluginsGetsAJobType(t *testing.T) {
	s := open(t)
	const racers = 20
	won := make(chan int, racers)
	var race errgroup.Group
	for i := range racers {
		race.Go(func() error {
			err := s.OwnTypes(t.Context(), fmt.Sprint("plugin-", i), []string{"X", "Y"}, nil)
			if err == nil {
				won <- i
				return nil
			}
			if owned := new(job.TypeOwnedError); !errors.As(err, &owned) {
				return err
			}
			return nil
		})
	}
	require.NoError(t, race.Wait())
	require.Len(t, won, 1)
}
