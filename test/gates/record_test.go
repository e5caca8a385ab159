package gates

import (
	"fmt"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// line is one line of the handlers' record.
type line struct {
	what    string // begin, end or over
	id      string
	fence   int64
	jobType string
	tenant  string
	at      time.Time
}

// attempt is one of a job.
type attempt struct {
	id    string
	fence int64
}

// lines reads the record in the order of time.
func (s *scene) lines(t *testing.T) []line {
	t.Helper()
	text, err := os.ReadFile(s.record)
	if os.IsNotExist(err) {
		return nil
	}
	require.NoError(t, err)
	var all []line
	for one := range strings.Lines(string(text)) {
		var l line
		var nanos int64
		_, err := fmt.Sscanf(one, "%s %s %d %s %s %d", &l.what, &l.id, &l.fence, &l.jobType, &l.tenant, &nanos)
		require.NoError(t, err, one)
		l.at = time.Unix(0, nanos)
		all = append(all, l)
	}
	slices.SortStableFunc(all, func(a, b line) int { return a.at.Compare(b.at) })
	return all
}

// begun are the lines that say so.
func begun(all []line) []line {
	return slices.DeleteFunc(slices.Clone(all), func(l line) bool { return l.what != "begin" })
}
