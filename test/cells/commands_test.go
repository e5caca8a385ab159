package cells

import (
	"bytes"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/holdfast-jobs/holdfast/runtime/job"
)

// command runs the command line against the servers, and returns what it printed.
func command(t *testing.T, want int, environ []string, args ...string) (stdout, stderr string) {
	t.Helper()
	var out, errs bytes.Buffer
	c := exec.CommandContext(t.Context(), filepath.Join(bin, "orchestrator"), args...)
	c.Dir, c.Stdout, c.Stderr = t.TempDir(), &out, &errs
	c.Env = append(append(os.Environ(), "HOLDFAST_USER=admin", "HOLDFAST_PASSWORD="+password), environ...)
	err := c.Run()
	var ended *exec.ExitError
	if !errors.As(err, &ended) {
		require.NoError(t, err)
	}
	require.Equal(t, want, c.ProcessState.ExitCode(), "%v: %s", args, errs.String())
	return out.String(), errs.String()
}

func TestCommandsShowAllCellsAndReachTheCellOfAJob(t *testing.T) {
	cells := start(t)
	var held []job.ID
	for range 5 {
		for _, c := range cells {
			held = append(held, asking(t, c.Address)(202, "POST", "/jobs", strings.Replace(echo, "{", `{"hold":true,`, 1), "Idempotency-Key", "k").id(t))
		}
	}
	held = held[:2] // the others are the same, by their key
	for range 4 {
		for _, c := range cells {
			asking(t, c.Address)(202, "POST", "/jobs", strings.Replace(echo, "{", `{"hold":true,`, 1))
		}
	}

	file := filepath.Join(t.TempDir(), "cells")
	require.NoError(t, os.WriteFile(file, []byte("0 http://"+cells[0].Address+"\n1 http://"+cells[1].Address+"\n"), 0o600))
	for name, given := range map[string]struct{ environ, args []string }{
		"flags":         {nil, []string{"--server", "0=http://" + cells[0].Address, "--server", "1=http://" + cells[1].Address}},
		"no numbers":    {nil, []string{"--server", "http://" + cells[0].Address, "--server", "http://" + cells[1].Address}},
		"a file":        {nil, []string{"--cells", file}},
		"the variables": {[]string{"HOLDFAST_SERVER=0=http://" + cells[0].Address + ",1=http://" + cells[1].Address}, nil},
	} {
		t.Run(name, func(t *testing.T) {
			run := func(want int, args ...string) (string, string) {
				t.Helper()
				return command(t, want, given.environ, append(args, given.args...)...)
			}
			whole, _ := run(0, "list", "--all")
			require.Equal(t, 1+10, strings.Count(whole, "\n"))
			for _, id := range held {
				require.Contains(t, whole, id.String())
				got, _ := run(0, "get", id.String(), "--json")
				require.Contains(t, got, id.String())
			}
			if name != "flags" {
				return
			}
			listed, notes := run(0, "list", "--limit", "7", "--json")
			require.Equal(t, 7, strings.Count(listed, `"jobId"`))
			require.Empty(t, notes)
			listed, notes = run(0, "list", "--limit", "7")
			require.Equal(t, 1+7, strings.Count(listed, "\n"), listed)
			_, cursor, found := strings.Cut(strings.TrimSpace(notes), "--cursor ")
			require.True(t, found, notes)
			rest, notes := run(0, "list", "--limit", "7", "--cursor", cursor)
			require.Equal(t, 1+3, strings.Count(rest, "\n"), rest)
			require.Empty(t, notes)
			queues, _ := run(0, "queues", "--json")
			require.Contains(t, strings.Join(strings.Fields(queues), ""), `"held":10`)
			run(0, "metrics")
			run(0, "series")
			run(0, "job-types")
			run(0, "dead-letter", "list")
			run(0, "dead-letter", "groups")
			run(0, "workers")
			foundBy, _ := run(0, "find", "k")
			for _, id := range held {
				require.Contains(t, foundBy, id.String(), "the key is in both cells, as nobody used a proxy")
				run(0, "inspect", id.String())
			}
			_, said := run(1, "submit", "ECHO", "--payload", `{"text":"x"}`)
			require.Contains(t, said, "several servers are named: name one with --server")
			run(1, "get", job.CellOf(9).Stamp(held[0]).String())
		})
	}
	both := []string{"--cells", file}
	command(t, 0, nil, append([]string{"cancel", held[0].String(), held[1].String()}, both...)...)
	for i, c := range cells {
		got := asking(t, c.Address)(200, "GET", "/jobs/"+held[i].String(), "")
		require.Contains(t, string(got.body), `"CANCELED"`)
	}
	_, said := command(t, 2, nil, "list", "--server", "1=http://a", "--server", "1=http://b")
	require.Contains(t, said, "two servers are of one cell")
	_, said = command(t, 2, nil, append([]string{"list", "--server", "http://a"}, both...)...)
	require.Contains(t, said, "use --server or --cells, not both")

	swapped := []string{"--server", "1=http://" + cells[0].Address, "--server", "0=http://" + cells[1].Address}
	for _, args := range [][]string{{"get", held[0].String()}, {"get", held[1].String()}, {"cancel", held[0].String()}, {"list"}} {
		_, said = command(t, 1, nil, append(args, swapped...)...)
		require.Regexp(t, "http://[^ ]+ is cell [01], and you named it as cell [01]: correct --server", said)
	}
	before := len(cells[0].jobs(t))
	_, said = command(t, 1, nil, "submit", "ECHO", "--payload", `{"text":"x"}`, "--server", "1=http://"+cells[0].Address)
	require.Contains(t, said, "http://"+cells[0].Address+" is cell 0, and you named it as cell 1")
	require.Len(t, cells[0].jobs(t), before, "nothing was submitted")
	command(t, 0, nil, "submit", "ECHO", "--payload", `{"text":"x"}`, "--server", "0=http://"+cells[0].Address)
	_, said = command(t, 1, nil, "get", held[1].String(), "--server", "http://"+cells[0].Address)
	require.Contains(t, said, "this id is of cell 1, and this is cell 0")

	require.NoError(t, cells[1].Kill())
	_, said = command(t, 1, nil, append([]string{"list"}, both...)...)
	require.Contains(t, said, "no answer from cell 1, http://"+cells[1].Address, "a part is not shown as if it were the whole")
	require.NotContains(t, said, "http://cells")
	require.NotContains(t, said, "--direct")
	command(t, 0, nil, append([]string{"get", held[0].String()}, both...)...)
}
