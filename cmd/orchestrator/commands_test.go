package main

import (
	"bytes"
	"encoding/json"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/holdfast-jobs/holdfast/store/storetest"
)

// execute runs one command and returns what it printed.
func execute(t *testing.T, environ []string, args ...string) (code int, stdout, stderr string) {
	t.Helper()
	var out, errs bytes.Buffer
	p := program{stdout: &out, stderr: &errs, environ: environ, assemble: assemble}
	code = p.run(t.Context(), args)
	return code, out.String(), errs.String()
}

func TestMigrateUpAndStatus(t *testing.T) {
	t.Chdir(t.TempDir())
	environ := []string{"HOLDFAST_DATABASE__URL=" + storetest.EmptyURL(t)}

	code, stdout, stderr := execute(t, environ, "migrate", "status")
	require.Equal(t, exitOK, code, stderr)
	require.Regexp(t, `NUMBER +NAME +APPLIED\n1 +0001_\S+ +pending\n`, stdout)

	code, stdout, stderr = execute(t, environ, "migrate", "up")
	require.Equal(t, exitOK, code, stderr)
	require.Regexp(t, `^[1-9]\d* migrations applied\n$`, stdout)
	_, stdout, _ = execute(t, environ, "migrate", "up")
	require.Equal(t, "0 migrations applied\n", stdout)

	code, stdout, _ = execute(t, environ, "migrate", "status", "--json")
	require.Equal(t, exitOK, code)
	var versions []struct {
		Number    int
		AppliedAt *string
	}
	require.NoError(t, json.Unmarshal([]byte(stdout), &versions))
	require.Equal(t, 1, versions[0].Number)
	require.NotNil(t, versions[0].AppliedAt)
}

func TestVersion(t *testing.T) {
	code, stdout, _ := execute(t, nil, "version")
	require.Equal(t, exitOK, code)
	require.Regexp(t, `^orchestrator \S+ \(commit \S+, go1\.\d+`, stdout)
	_, stdout, _ = execute(t, nil, "version", "--json")
	require.True(t, json.Valid([]byte(stdout)))
}

func TestUnknownCommandsAreUsageErrors(t *testing.T) {
	for args, want := range map[string]string{
		"sevre":         `unknown command "sevre"`,
		"migrate upp":   `unknown command "upp"`,
		"version extra": `the argument "extra" is not expected; usage: orchestrator version`,
		"serve extra":   `the argument "extra" is not expected; usage: orchestrator serve`,
	} {
		code, stdout, stderr := execute(t, nil, strings.Fields(args)...)
		require.Equal(t, exitUsage, code, args)
		require.Empty(t, stdout)
		require.Contains(t, stderr, "orchestrator: "+want)
	}
}
