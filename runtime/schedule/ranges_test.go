package schedule

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

func TestRangesThatRunBackwardsAreRefused(t *testing.T) {
	for text, right := range map[string]string{
		"30 6 * * 5-1":       "5-6,0-1",
		"30 6 * * FRI-MON":   "FRI-SAT,SUN-MON",
		"30 6 * * sat-sun":   "sat,sun",
		"30 6 * * 7-2":       "7,0-2",
		"0 22-2 * * *":       "22-23,0-2",
		"0 0 * NOV-Feb *":    "NOV-DEC,JAN-Feb",
		"0 0 28-3 * *":       "28-31,1-3",
		"0 0 * * 1,5-1":      "5-6,0-1",
		"50-10 * * * *":      "50-59,0-10",
		"50-10 * * * * *":    "50-59,0-10",
		"0 0 22-0 * * 1-5":   "22-23,0",
		"*/5 23-1/2 * * 1-5": "23,1",
	} {
		_, err := parseCron(text, time.UTC)
		require.ErrorContains(t, err, "runs backwards", text)
		require.ErrorContains(t, err, right, text)
	}
	for _, text := range []string{
		"30 6 * * 1-5", "30 6 * * 5-7", "30 6 * * SUN-SAT", "0 0-0 * * *", "0 0 * JAN-DEC *", "30 6 * * 5-6,0-1", "30 6 * * FRI-SAT,SUN-MON",
		"30 6 * * sat,sun", "30 6 * * 7,0-2", "0 22-23,0-2 * * *", "0 0 * NOV-DEC,JAN-Feb *", "0 0 28-31,1-3 * *",
	} {
		_, err := parseCron(text, time.UTC)
		require.NoError(t, err, text)
	}
}
