package job_test

import (
	"bytes"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/holdfast-jobs/holdfast/runtime/job"
)

func TestAnIDOfACellEndsInTheCellAndIsOtherwiseAsItWas(t *testing.T) {
	id, err := job.ParseID(canonical)
	require.NoError(t, err)
	for number, text := range map[uint8]string{
		0:   "0192d3f4-5a6b-8c8d-9e0f-a1b2c3d4e500",
		3:   "0192d3f4-5a6b-8c8d-9e0f-a1b2c3d4e503",
		255: "0192d3f4-5a6b-8c8d-9e0f-a1b2c3d4e5ff",
	} {
		cell := job.CellOf(number)
		stamped := cell.Stamp(id)
		require.Equal(t, text, stamped.String())
		require.Equal(t, cell, stamped.Cell())
		require.Equal(t, id.Time(), stamped.Time())
	}
}

func TestAnIDOfNoCellNamesNone(t *testing.T) {
	id, err := job.ParseID(canonical)
	require.NoError(t, err)
	require.Equal(t, id, job.Cell{}.Stamp(id))
	require.Equal(t, job.Cell{}, id.Cell())
	_, present := id.Cell().Number()
	require.False(t, present)
	require.Empty(t, id.Cell().String())
	require.Equal(t, "0", job.CellOf(0).String(), "0 is a cell like any other")
}

func TestIDsOfAllCellsSortByTime(t *testing.T) {
	earlier, err := job.ParseID(canonical)
	require.NoError(t, err)
	later := earlier
	later[5]++ // a millisecond
	for _, a := range []job.Cell{{}, job.CellOf(0), job.CellOf(255)} {
		for _, b := range []job.Cell{{}, job.CellOf(0), job.CellOf(255)} {
			first, second := a.Stamp(earlier), b.Stamp(later)
			require.Negative(t, bytes.Compare(first[:], second[:]))
		}
	}
}
