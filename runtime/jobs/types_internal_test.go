package jobs

import (
	"context"
	"log/slog"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/holdfast-jobs/holdfast/runtime/job"
)

// catalog is a store that takes a second to list the job types.
type catalog struct {
	Store

	reads int
	types []job.TypeSpec
}

func (c *catalog) Catalog(context.Context) ([]job.TypeSpec, error) {
	c.reads++
	time.Sleep(time.Second)
	return c.types, nil
}

func TestSubmissionsOfAnUnknownTypeShareOneLook(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		store := &catalog{}
		types := &Types{store: store, cfg: Config{Log: slog.New(slog.DiscardHandler)}, metrics: unmeasured(t), known: map[string]job.TypeSpec{}}
		given, giveUp := context.WithCancel(t.Context())
		defer giveUp()
		for i := range 100 {
			ctx := t.Context()
			if i == 0 {
				ctx = given
			}
			go func() {
				_, err := types.spec(ctx, "LATE")
				require.ErrorIs(t, err, job.ErrUnknownType)
			}()
			if i == 0 {
				synctest.Wait()
				giveUp()
			}
		}
		time.Sleep(2 * time.Second)
		synctest.Wait()
		require.Equal(t, 1, store.reads)

		store.types = []job.TypeSpec{{Type: "LATE"}}
		_, err := types.spec(t.Context(), "LATE")
		require.NoError(t, err)
		require.Equal(t, 2, store.reads)
	})
}
