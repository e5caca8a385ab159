package postgres

import (
	"strconv"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/holdfast-jobs/holdfast/runtime/job"
	"github.com/holdfast-jobs/holdfast/test/pgtest"
)

func TestADatabaseBecomesOneCellForEver(t *testing.T) {
	url := pgtest.URL(t)
	has, err := ReadCell(t.Context(), url)
	require.NoError(t, err)
	require.Equal(t, job.Cell{}, has)
	require.NoError(t, TakeCell(t.Context(), url, job.CellOf(0)))
	require.NoError(t, TakeCell(t.Context(), url, job.CellOf(0)), "again")
	err = TakeCell(t.Context(), url, job.CellOf(255))
	require.ErrorIs(t, err, job.ErrWrongCell)
	require.NotErrorIs(t, err, job.ErrUnavailable, "waiting does not help")
	has, err = ReadCell(t.Context(), url)
	require.NoError(t, err)
	require.Equal(t, job.CellOf(0), has)
}

func TestAnEarlierSchemaIsNoCell(t *testing.T) {
	has, err := ReadCell(t.Context(), pgtest.EmptyURL(t))
	require.NoError(t, err)
	require.Equal(t, job.Cell{}, has)
}

func TestOfManyProgramsThatTakeCellsAtOnceThoseOfOneCellSucceed(t *testing.T) {
	url := pgtest.URL(t)
	const each = 5
	outcomes := make([]error, 3*each)
	var all sync.WaitGroup
	for i := range outcomes {
		all.Go(func() { outcomes[i] = TakeCell(t.Context(), url, job.CellOf(uint8(i%3))) })
	}
	all.Wait()
	has, err := ReadCell(t.Context(), url)
	require.NoError(t, err)
	for i, err := range outcomes {
		if has == job.CellOf(uint8(i%3)) {
			require.NoError(t, err)
		} else {
			require.ErrorIs(t, err, job.ErrWrongCell)
			require.ErrorContains(t, err, "is cell "+has.String()+", and database.cell is "+strconv.Itoa(i%3))
		}
	}
}
