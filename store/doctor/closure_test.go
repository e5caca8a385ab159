package doctor

import (
	"context"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/holdfast-jobs/holdfast/runtime/job"
	"github.com/holdfast-jobs/holdfast/store/transfer"
	"github.com/holdfast-jobs/holdfast/test/fullledger"
)

func unseen(transfer.Progress) {}

// closed returns the check of a closed ledger, after it has compared the names of the others.
func closed(t testing.TB, d *Doctor, others []string) job.Check {
	t.Helper()
	found, err := d.Diagnose(t.Context())
	require.NoError(t, err)
	names := make([]string, 0, len(found))
	for _, check := range found[1:] {
		names = append(names, check.Name)
		if check.Name != "server_settings" { // those of the tests' server
			require.Equal(t, job.Fine, check.Severity, "%+v", check)
		}
	}
	require.Equal(t, others, names)
	require.Equal(t, ledgerClosed, found[0].Name)
	return found[0]
}

func TestADiagnosisSaysThatALedgerWasExportedAndWhatToDo(t *testing.T) {
	d, url := open(t)
	require.NoError(t, fullledger.Fill(t.Context(), url, 100))
	exec(t, connect(t, url), "analyze")
	path := filepath.Join(t.TempDir(), "ledger")
	looked := false
	_, err := transfer.Export(t.Context(), url, path, func(transfer.Progress) {
		if looked {
			return
		}
		looked = true
		check := closed(t, d, whileExported)
		require.Equal(t, job.Warning, check.Severity)
		require.Contains(t, check.Summary, "The ledger is closed: it is being exported since 20")
		require.Contains(t, check.Remedy, "Wait until `orchestrator export` is done")
	})
	require.NoError(t, err)
	require.True(t, looked)
	require.Eventually(t, func() bool { // the session of the export ends on its own
		return closed(t, d, whileExported).Severity == job.Problem
	}, patience, patience/1000)
	check := closed(t, d, whileExported)
	require.Contains(t, check.Summary, "The ledger is closed: it was exported at 20")
	require.Contains(t, check.Remedy, "Use the database that it was imported into")
	require.Contains(t, check.Remedy, "`orchestrator export --reopen`")

	_, err = transfer.Reopen(t.Context(), url)
	require.NoError(t, err)
	require.NotContains(t, diagnose(t, d), ledgerClosed)
}

func TestADiagnosisDoesNotTakeHalfAnImportForDamage(t *testing.T) {
	_, source := open(t)
	require.NoError(t, fullledger.Fill(t.Context(), source, 100))
	path := filepath.Join(t.TempDir(), "ledger")
	_, err := transfer.Export(t.Context(), source, path, unseen)
	require.NoError(t, err)

	d, target := open(t)
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	_, err = transfer.Import(ctx, target, job.Cell{}, path, func(at transfer.Progress) {
		if at.Step == transfer.Writing && at.Rows > 0 {
			if ctx.Err() == nil {
				check := closed(t, d, whileImporting)
				require.Equal(t, job.Warning, check.Severity)
				require.Contains(t, check.Summary, "an import is at work since 20")
				require.Contains(t, check.Summary, "and 100 rows are in")
			}
			cancel()
		}
	})
	require.ErrorIs(t, err, context.Canceled)
	require.Eventually(t, func() bool { return closed(t, d, whileImporting).Severity == job.Problem }, patience, patience/1000)
	check := closed(t, d, whileImporting)
	require.Contains(t, check.Summary, "an import began at 20")
	require.Contains(t, check.Summary, "was interrupted, and 100 rows are in")
	require.Contains(t, check.Remedy, "Run `orchestrator import` again with the same file")

	_, err = transfer.Import(t.Context(), target, job.Cell{}, path, unseen)
	require.NoError(t, err)
	require.Equal(t, job.Fine, diagnose(t, d)["ledger_and_lists"].Severity)
}

func TestTheChecksOfAClosedLedgerAreThere(t *testing.T) {
	var names []string
	for _, check := range checks {
		names = append(names, check.name)
	}
	require.Subset(t, names, whileExported)
	require.Subset(t, whileExported, whileImporting)
}
