package failover

import (
	"fmt"
	"os"
	"strings"
	"testing"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/stretchr/testify/require"
)

// findings are violations of the store's promises. They come from answers to clients,
// the tables of the new primary, and the lines that handlers wrote, not from the
// store.
type findings struct {
	Lost        []string // acknowledged keys without their job
	SecondJobs  []string // keys with more than one job
	FencesTwice []string // fences under which two attempts of a job began
	Overlaps    []string // jobs with two attempts at a time
	Failed      int      // jobs that did not succeed
}

func check(t *testing.T, l *load, db *pgxpool.Pool, steps string) findings {
	t.Helper()
	rows, err := db.Query(t.Context(), `select idempotency_key, job_id::text from jobs where idempotency_key is not null`)
	require.NoError(t, err)
	var key, id string
	stored := make(map[string]string)
	found := findings{SecondJobs: l.twice}
	_, err = pgx.ForEachRow(rows, []any{&key, &id}, func() error {
		if _, ok := stored[key]; ok {
			found.SecondJobs = append(found.SecondJobs, key)
		}
		stored[key] = id
		return nil
	})
	require.NoError(t, err)
	for key, answer := range l.accepted {
		switch stored[key] {
		case answer.id:
		case "":
			found.Lost = append(found.Lost, key)
		default:
			found.Lost = append(found.Lost, key)
			found.SecondJobs = append(found.SecondJobs, key)
		}
	}
	require.NoError(t, db.QueryRow(t.Context(), "select count(*) from jobs where state <> 'succeeded'").Scan(&found.Failed))
	found.readSteps(t, steps)
	return found
}

// readSteps reads the lines that the handlers wrote, which are in the order of time.
func (f *findings) readSteps(t *testing.T, path string) {
	t.Helper()
	text, err := os.ReadFile(path)
	require.NoError(t, err)
	begun := make(map[string]bool)     // by job and fence
	running := make(map[string]string) // fences by job; one whose process was killed has no end
	ends := make(map[string]bool)
	for line := range strings.Lines(string(text)) {
		var what, id, fence string
		var at int64
		_, err := fmt.Sscan(line, &what, &id, &fence, &at)
		require.NoError(t, err, line)
		if what == "end" {
			ends[id+" "+fence] = true
		}
	}
	for line := range strings.Lines(string(text)) {
		var what, id, fence string
		var at int64
		_, err := fmt.Sscan(line, &what, &id, &fence, &at)
		require.NoError(t, err, line)
		attempt := id + " " + fence
		if what == "end" {
			delete(running, id)
			continue
		}
		if begun[attempt] {
			f.FencesTwice = append(f.FencesTwice, attempt)
		}
		if other, ok := running[id]; ok && ends[id+" "+other] {
			f.Overlaps = append(f.Overlaps, id)
		}
		begun[attempt], running[id] = true, fence
	}
}
