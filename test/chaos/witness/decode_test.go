package witness

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/holdfast-jobs/holdfast/test/chaos/history"
)

func TestALineOfTestDecodingIsRead(t *testing.T) {
	tables := map[string]bool{"jobs": true, "leases": true, "workers": true}
	for line, want := range map[string]history.Change{
		`table public.jobs: INSERT: job_id[uuid]:'a-b' tenant[text]:'it''s ] new-tuple: x' tags[text[]]:'{a,b}' attempt[smallint]:-1 at[timestamp with time zone]:'2026-11-23 16:35:07+00' worker_id[text]:null payload[json]:'{"a": 1}' turn[boolean]:true`: {
			Op: history.Insert, Table: "jobs",
			Row: history.Row{"job_id": "a-b", "tenant": "it's ] new-tuple: x", "tags": "{a,b}", "attempt": "-1", "at": "2026-11-23 16:35:07+00", "turn": "t"},
		},
		`table public.jobs: UPDATE: old-key: job_id[uuid]:'a'' new-tuple: ' new-tuple: job_id[uuid]:'b' tags[text[]]:unchanged-toast-datum`: {
			Op: history.Update, Table: "jobs", Old: history.Row{"job_id": "a' new-tuple: "}, Row: history.Row{"job_id": "b"},
		},
		`table public.leases: DELETE: job_id[uuid]:'a'`: {Op: history.Delete, Table: "leases", Old: history.Row{"job_id": "a"}},
		`table public.workers: UPDATE: worker_id[text]:'w/1' alive_until[timestamp with time zone]:'2026-11-23 16:35:07+00' stopped_at[timestamp with time zone]:null host[text]:'h' pid[integer]:1 pid_started[bigint]:2 plugins[json]:'[{"Plugin": "mail"}]' roles[text[]]:'{api,worker}'`: {
			Op: history.Update, Table: "workers", Row: history.Row{"worker_id": "w/1", "alive_until": "2026-11-23 16:35:07+00"},
		},
	} {
		read, ok, err := change(line, tables)
		require.NoError(t, err)
		require.True(t, ok)
		require.Equal(t, want, read)
	}
	for _, line := range []string{"BEGIN 12", "table public.tallies: INSERT: a[integer]:1"} {
		_, ok, err := change(line, tables)
		require.NoError(t, err)
		require.False(t, ok, line)
	}
	_, _, err := change(`table public.jobs: INSERT: job_id[uuid]:'a`, tables)
	require.Error(t, err)

	at, err := committedAt("COMMIT 12 (at 2026-11-23 16:35:07.123456+00)")
	require.NoError(t, err)
	require.Equal(t, int64(1795451707123456000), int64(at))
}
