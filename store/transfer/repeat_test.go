package transfer

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/holdfast-jobs/holdfast/runtime/job"
	"github.com/holdfast-jobs/holdfast/test/pgtest"
)

func TestAnExportThatIsRepeatedSucceedsAndChangesNothing(t *testing.T) {
	source := filled(t, 100)
	path := filepath.Join(t.TempDir(), "ledger.ndjson")
	first, err := Export(t.Context(), source, path, unseen)
	require.NoError(t, err)
	require.False(t, first.Already)
	written, err := os.Stat(path)
	require.NoError(t, err)

	link := path + ".link"
	require.NoError(t, os.Symlink(path, link))
	for _, name := range []string{path, link} {
		again, err := Export(t.Context(), source, name, unseen)
		require.NoError(t, err)
		want := first
		want.File, want.Already, want.Resumed = name, true, first.Rows
		require.Equal(t, want, again)
		require.NoFileExists(t, name+unfinished)
	}
	now, err := os.Stat(path)
	require.NoError(t, err)
	require.Equal(t, written.ModTime(), now.ModTime())
	require.ErrorIs(t, Check(t.Context(), source), ErrClosed)

	other := path + "2"
	second, err := Export(t.Context(), source, other, unseen)
	require.NoError(t, err, "another name gets another file of the same jobs")
	require.False(t, second.Already)
	require.Equal(t, first.SHA256, second.SHA256)
}

func TestAnExportLeavesEveryOtherFileAsItIs(t *testing.T) {
	source, target := filled(t, 100), pgtest.URL(t)
	path := exportTo(t, source)
	whole, err := os.ReadFile(path)
	require.NoError(t, err)
	refused := func(url, path, complaint string) {
		t.Helper()
		before, _ := os.ReadFile(path)
		_, err := Export(t.Context(), url, path, unseen)
		require.ErrorContains(t, err, path+" exists")
		require.ErrorContains(t, err, complaint)
		require.ErrorContains(t, err, "name a new file")
		after, _ := os.ReadFile(path)
		require.Equal(t, before, after)
		require.NoFileExists(t, path+unfinished)
	}
	for name, text := range map[string][]byte{
		"notes":      []byte("my notes\n"),
		"nothing":    {},
		"cut":        whole[:len(whole)-1],
		"with more":  append(append([]byte{}, whole...), '\n'),
		"half of it": whole[:len(whole)/2],
	} {
		other := filepath.Join(t.TempDir(), name)
		require.NoError(t, os.WriteFile(other, text, 0o600))
		refused(source, other, "is no complete export ("+other+", line ")
	}
	refused(source, t.TempDir(), "exists; name a new file")

	another := filled(t, 60)
	refused(another, path, "but the ledger of this database is open")
	require.NoError(t, Check(t.Context(), another), "it stays open")
	exportTo(t, another)
	refused(another, path, "but the ledger of this database is closed for another")

	ctx, note := stopAfter(t, Analyzing, 0)
	_, err = Import(ctx, target, job.Cell{}, path, note)
	require.Error(t, err)
	_, err = Export(t.Context(), target, path, unseen)
	require.ErrorContains(t, err, "an import of the export")

	_, err = Reopen(t.Context(), source)
	require.NoError(t, err)
	refused(source, path, "it was opened again since, or is another one")
	require.NoError(t, Check(t.Context(), source), "it stays open")
}

func TestAnImportThatIsRepeatedSucceedsAndChangesNothing(t *testing.T) {
	source, target := filled(t, 100), pgtest.URL(t)
	exec(t, source, "insert into cell (number) values (3)")
	path := exportTo(t, source)
	first, err := Import(t.Context(), target, job.Cell{}, path, unseen)
	require.NoError(t, err)
	require.False(t, first.Already)

	// Orchestrators work on it, and a later version migrates it.
	exec(t, target, "insert into audit_log (actor, action) values ('ann', 'x'); insert into workers (worker_id, alive_until, host, pid, pid_started) values ('w', now(), 'h', 1, 1); "+
		"insert into goose_db_version (version_id, is_applied) values (9999, true)")
	before := content(t, target)
	copied := filepath.Join(t.TempDir(), "copied")
	whole, err := os.ReadFile(path)
	require.NoError(t, err)
	require.NoError(t, os.WriteFile(copied, whole, 0o600))
	again, err := Import(t.Context(), target, job.Cell{}, copied, unseen)
	require.NoError(t, err)
	want := first
	want.File, want.Already, want.Resumed = copied, true, first.Rows
	require.Equal(t, want, again)
	require.Equal(t, before, content(t, target))
	require.NoError(t, Check(t.Context(), target))

	_, err = Import(t.Context(), target, job.CellOf(9), path, unseen)
	require.ErrorIs(t, err, job.ErrWrongCell)
	exec(t, target, "delete from goose_db_version where version_id = 9999")
	_, err = Import(t.Context(), target, job.Cell{}, exportTo(t, filled(t, 60)), unseen)
	require.ErrorContains(t, err, "the database is not empty")
	require.ErrorContains(t, err, "no import of this file was finished there")

	onward := exportTo(t, target)
	_, err = Import(t.Context(), target, job.Cell{}, path, unseen)
	require.ErrorIs(t, err, ErrClosed, "its jobs are elsewhere now")
	_, err = Import(t.Context(), pgtest.URL(t), job.Cell{}, onward, unseen)
	require.NoError(t, err, "the mark does not move")
}

// Even if nothing of it is left: what ran must not run twice.
func TestAnImportThatIsRepeatedBringsNoJobBack(t *testing.T) {
	target := pgtest.URL(t)
	path := exportTo(t, filled(t, 60))
	_, err := Import(t.Context(), target, job.Cell{}, path, unseen)
	require.NoError(t, err)
	for _, table := range moved {
		exec(t, target, "truncate "+table+" cascade")
	}
	again, err := Import(t.Context(), target, job.Cell{}, path, unseen)
	require.NoError(t, err)
	require.True(t, again.Already)
	require.Zero(t, ask[int](t, target, "select count(*) from jobs"))
}
