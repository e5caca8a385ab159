package runtime

import (
	"bytes"
	"log/slog"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/stretchr/testify/require"

	"github.com/holdfast-jobs/holdfast/runtime/job"
	"github.com/holdfast-jobs/holdfast/runtime/jobs"
	"github.com/holdfast-jobs/holdfast/test/pgtest"
	"github.com/holdfast-jobs/holdfast/test/storetest"
)

// serving is a supervisor that serves types and runs nothing.
type serving struct {
	Plugins
	types []string
}

func (s serving) Pools() []job.Pool { return []job.Pool{{Plugin: "p", Types: s.types, Free: 1}} }

func TestAJobThatWaitsLongWakesTheClaimerOrIsReported(t *testing.T) {
	url := pgtest.URL(t)
	db := storetest.Open(t, url, 2)
	var said bytes.Buffer
	woken := jobs.NewTypedSignal()
	m := &unservedMonitor{
		store: db, plugins: serving{types: []string{"OURS"}},
		log: slog.New(slog.NewTextHandler(&said, nil)), wake: woken,
	}
	now := time.Now()
	waiting := func(id byte, jobType string, since time.Time) {
		for _, submitted := range db.Submit(t.Context(), []job.Submission{{
			ID: job.ID{id}, Type: jobType, Tenant: job.DefaultTenant, Payload: []byte("1"), RunAt: since,
			MaxAttempts: 1, Timeout: time.Minute,
		}}) {
			require.NoError(t, submitted.Err)
		}
	}

	waiting(1, "OURS", now)
	waiting(2, "NOBODYS", now)
	m.look(t.Context())
	require.Empty(t, woken.Woken(), "nothing has waited long")
	require.Empty(t, said.String())

	waiting(3, "NOBODYS", now.Add(-2*time.Hour))
	m.look(t.Context())
	require.Empty(t, woken.Woken())
	require.Contains(t, said.String(), "level=WARN")
	require.Contains(t, said.String(), "job_type=NOBODYS jobs=2 oldest=2h0m")
	require.NotContains(t, said.String(), "OURS")

	said.Reset()
	waiting(4, "OURS", now.Add(-2*time.Hour))
	conn, err := pgx.Connect(t.Context(), url)
	require.NoError(t, err)
	defer func() { require.NoError(t, conn.Close(t.Context())) }()
	_, err = conn.Exec(t.Context(), "delete from ready where job_type = 'NOBODYS'")
	require.NoError(t, err)
	m.look(t.Context())
	require.Len(t, woken.Woken(), 1)
	require.Equal(t, []string{"OURS"}, woken.Take())
	require.Empty(t, said.String())
}
