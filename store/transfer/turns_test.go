package transfer

import (
	"context"
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/holdfast-jobs/holdfast/runtime/job"
	"github.com/holdfast-jobs/holdfast/test/pgtest"
)

// waitForTurns sets how long commands of the test wait for each other.
func waitForTurns(t testing.TB, within time.Duration) {
	t.Helper()
	before := turnWithin
	turnWithin = within
	t.Cleanup(func() { turnWithin = before })
}

// once calls do when the step has come to its second part.
func once(step string, do func()) func(Progress) {
	return func(at Progress) {
		if do != nil && at.Step == step && at.Rows > 0 {
			do()
			do = nil
		}
	}
}

func TestOneExportOrImportWorksOnADatabaseAtATime(t *testing.T) {
	waitForTurns(t, 50*time.Millisecond)
	source, target := filled(t, someJobs), pgtest.URL(t)
	path := filepath.Join(t.TempDir(), "ledger.ndjson")
	another := exportTo(t, filled(t, 100))
	refused := func(url, file string) {
		t.Helper()
		_, imported := Import(t.Context(), url, job.Cell{}, file, unseen)
		_, exported := Export(t.Context(), url, path+"2", unseen)
		_, reopened := Reopen(t.Context(), url)
		for what, err := range map[string]error{"import": imported, "export": exported, "reopen": reopened} {
			require.EqualError(t, err, "another import or export is running on this database; wait until it is done. "+
				"If it was killed, PostgreSQL ends its session soon: run the command again", what)
		}
		require.NoFileExists(t, path+"2"+unfinished)
	}
	began := false
	_, err := Export(t.Context(), source, path, once(Reading, func() {
		began = true
		refused(source, another)
	}))
	require.NoError(t, err)
	require.True(t, began)
	for _, step := range []string{Writing, Analyzing, Comparing} {
		target = pgtest.URL(t)
		began = false
		_, err = Import(t.Context(), target, job.Cell{}, path, once(step, func() {
			began = true
			refused(target, path)
		}))
		require.NoError(t, err, step)
		require.True(t, began, step)
		require.Equal(t, content(t, source), content(t, target))
	}
}

func TestOfTwoImportsAtOnceTheSecondWaitsAndFindsTheLedger(t *testing.T) {
	waitForTurns(t, time.Minute)
	source, target := filled(t, someJobs), pgtest.URL(t)
	path := exportTo(t, source)
	errs, already := make(chan error, 2), make(chan bool, 2)
	for range cap(errs) {
		go func() {
			report, err := Import(context.WithoutCancel(t.Context()), target, job.Cell{}, path, unseen)
			errs <- err
			already <- report.Already
		}()
	}
	for range cap(errs) {
		require.NoError(t, <-errs)
	}
	require.NotEqual(t, <-already, <-already, "one has done it all")
	require.Equal(t, content(t, source), content(t, target))
}

// begun is an import that has not waited for its turn, as through a pooler that gives its
// session to others.
func begun(t testing.TB, url, path string, note func(Progress)) *importer {
	t.Helper()
	file, found, err := openFile(t.Context(), path, unseen)
	require.NoError(t, err)
	t.Cleanup(func() { _ = file.Close() })
	i, err := newImporter(t.Context(), open(t, url), job.Cell{}, file, found, note)
	require.NoError(t, err)
	t.Cleanup(func() { _ = i.conn.Close(context.Background()) })
	return i
}

func TestAnImportThatAnotherHasOvertakenWritesNothing(t *testing.T) {
	source, target := filled(t, someJobs), pgtest.URL(t)
	path := exportTo(t, source)
	second := begun(t, target, path, unseen)
	ctx, note := stopAfter(t, Writing, 2)
	_, err := Import(ctx, target, job.Cell{}, path, note)
	require.Error(t, err)
	require.ErrorContains(t, second.write(t.Context()), "another import has written to the database meanwhile")
	third := begun(t, target, path, unseen)
	require.NoError(t, third.write(t.Context()))
	require.NoError(t, third.finish(t.Context()))
	require.Equal(t, content(t, source), content(t, target))
}

// Whatever the late import believes, the ledger is open and somebody works on it.
func TestALateImportLeavesTheOpenLedgerAsItIs(t *testing.T) {
	source, target := filled(t, someJobs), pgtest.URL(t)
	path := exportTo(t, source)
	writing := begun(t, target, path, unseen)
	first := begun(t, target, path, unseen)
	require.NoError(t, first.write(t.Context()))
	finishing := begun(t, target, path, unseen)
	require.NoError(t, first.finish(t.Context()))
	require.NoError(t, Check(t.Context(), target))

	const audit = "insert into audit_log (actor, action) values ('ann', 'x') returning audit_id"
	last := ask[int64](t, target, audit)
	exec(t, target, "delete from ready")
	now := content(t, target)
	const done = "the import is done: another one has finished it"
	require.ErrorContains(t, writing.write(t.Context()), done)
	require.EqualError(t, finishing.finish(t.Context()), done)
	require.Equal(t, now, content(t, target))
	require.Equal(t, last+1, ask[int64](t, target, audit), "no id is given twice")
}

func TestOfTwoImportsThatFinishAtOnceTheFirstOpensTheLedger(t *testing.T) {
	source, target := filled(t, someJobs), pgtest.URL(t)
	path := exportTo(t, source)
	second := make(chan error, 1)
	var late *importer
	note := once(Comparing, func() {
		go func() { second <- late.finish(context.WithoutCancel(t.Context())) }()
		require.Eventually(t, func() bool {
			return ask[bool](t, target, "select exists (select from pg_locks where relation = 'ledger_closure'::regclass and not granted)")
		}, time.Minute, 5*time.Millisecond)
	})
	first := begun(t, target, path, note)
	require.NoError(t, first.write(t.Context()))
	late = begun(t, target, path, unseen)
	require.NoError(t, first.finish(t.Context()))
	require.EqualError(t, <-second, "the import is done: another one has finished it")
	require.Equal(t, content(t, source), content(t, target))
	require.NoError(t, Check(t.Context(), target))
}

// A ledger that was closed for another export meanwhile is not this import's to open.
func TestAnImportOpensOnlyTheLedgerThatItClosed(t *testing.T) {
	target := pgtest.URL(t)
	path := exportTo(t, filled(t, 100))
	i := begun(t, target, path, unseen)
	require.NoError(t, i.write(t.Context()))
	exec(t, target, "update ledger_closure set export_id = 'another'")
	require.ErrorContains(t, i.finish(t.Context()), "this database has half of another file")
	require.ErrorIs(t, Check(t.Context(), target), ErrClosed)
}
