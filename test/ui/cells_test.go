package ui

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/chromedp/chromedp"
	"github.com/stretchr/testify/require"

	"github.com/holdfast-jobs/holdfast/test/rig/rigtest"
)

// ofAllCells is the password of the operator in all cells.
const ofAllCells = "one for all of the cells"

// twoCells starts two cells, and the pages that show both. It returns the cells, and the link
// that logs a browser in.
func twoCells(t *testing.T) (cells []*scene, link string) {
	t.Helper()
	var file strings.Builder
	for i := range 2 {
		s := newScene(t, fmt.Sprintf("database.cell=%d", i), "security.password="+ofAllCells)
		fmt.Fprintf(&file, "%d %s\n", i, s.origin)
		cells = append(cells, s)
	}
	dir := t.TempDir()
	require.NoError(t, os.WriteFile(filepath.Join(dir, "cells"), []byte(file.String()), 0o600))
	pages := exec.CommandContext(t.Context(), filepath.Join(bin, "orchestrator"), "ui", "--cells", "cells", "--listen", "127.0.0.1:0")
	pages.Cancel = func() error { return pages.Process.Signal(syscall.SIGTERM) }
	pages.Dir, pages.Stderr = dir, rigtest.Log(t)
	pages.Env = append(os.Environ(), "HOLDFAST_USER=admin", "HOLDFAST_PASSWORD="+ofAllCells)
	out, err := pages.StdoutPipe()
	require.NoError(t, err)
	require.NoError(t, pages.Start())
	t.Cleanup(func() { // the context has ended; a program that fails then has another error
		require.ErrorIs(t, pages.Wait(), context.Canceled, "a signal is the usual end")
	})
	line, err := bufio.NewReader(out).ReadString('\n')
	require.NoError(t, err)
	return cells, strings.TrimSpace(line)
}

// enter logs in with the link.
func enter(t *testing.T, link string) *tab {
	t.Helper()
	origin, path, found := strings.Cut(link, "/ui/")
	require.True(t, found, link)
	b := newTab(t, origin)
	b.open("/ui/" + path)
	b.press("Log in")
	return b
}

// missing awaits that the present page says of cell 1 whether it is missing.
func (b *tab) missing(is bool) {
	b.t.Helper()
	b.await(fmt.Sprintf(`Boolean(document.getElementById("missing-1")) == %t`, is), "the page is live")
}

func TestCellsAreShownAsOne(t *testing.T) {
	t.Parallel()
	cells, link := twoCells(t)
	var held, dead [2]string
	for i, s := range cells {
		held[i] = s.submit(t, fmt.Sprintf(`{"jobType": "WORK", "payload": {}, "hold": true, "tags": ["of-%d"]}`, i))
		dead[i] = s.submit(t, fmt.Sprintf(`{"jobType": "WORK", "payload": {"error": "order %d has no address"}, "maxAttempts": 1}`, i))
		rigtest.Await(t, s.Orchestrator, dead[i], "FAILED")
		s.call(t, http.MethodPost, "/workflows", json.RawMessage(`{"name": "flow", "jobs": [{"name": "a", "jobType": "WORK", "payload": {}}]}`), http.StatusAccepted)
	}
	b := enter(t, link)

	// Figures, once both were read.
	b.open("/ui/")
	b.await(`document.querySelector("a.tile.dead b").innerText == "2"`, "dead jobs of both")
	require.Contains(t, b.text("#live-cells"), "All cells")
	b.open("/ui/types")
	b.await(`document.querySelector("#type-WORK td[data-label=Dead]").innerText == "2"`)
	b.open("/ui/dead-letters")
	b.await(`document.querySelector("main tbody").innerText.includes("has no address")`)
	require.Equal(t, 1, value[int](b, `document.querySelectorAll("main tbody tr[data-row]").length`), "the same error in both cells is one group")

	// Lists, with the cell of each row.
	b.open("/ui/jobs")
	for i := range cells {
		require.Contains(t, b.text("#job-"+dead[i]), fmt.Sprintf("cell %d", i))
		require.Contains(t, b.text("#job-"+held[i]), "Held")
	}
	b.open("/ui/workflows")
	require.Equal(t, 2, value[int](b, `document.querySelectorAll("main tbody tr[data-row]").length`))

	// What names jobs goes to their cells.
	b.open("/ui/jobs?state=held&tag=of-1")
	require.NotContains(t, b.text("main tbody"), "cell 0")
	b.open("/ui/jobs?state=dead")
	for _, id := range dead {
		b.click("#pick-" + id)
	}
	b.press("Requeue selected")
	require.Contains(t, b.text("#notice"), "2 requeued")
	b.open("/ui/jobs/" + held[1])
	b.press("Release")
	rigtest.Await(t, cells[1].Orchestrator, held[1], "COMPLETED")
	for i, s := range cells {
		require.Eventually(t, func() bool { return s.attempts(t, dead[i]) == 2 }, patience, glance)
	}
	b.open("/ui/jobs?q=" + held[1])
	require.Equal(t, "/ui/jobs/"+held[1], b.path())

	// What is of one cell leads to the cells.
	for _, path := range []string{"/ui/schedules", "/ui/workers", "/ui/plugins", "/ui/audit", "/ui/health", "/ui/types/WORK", "/ui/operations/new?action=requeue&state=dead"} {
		b.open(path)
		require.Equal(t, http.StatusOK, b.status(), path)
		require.Contains(t, b.text("h1"), "Choose a cell", path)
		for _, s := range cells {
			require.Contains(t, value[[]string](b, `Array.from(document.querySelectorAll("main li a"), a => a.href)`), s.origin+path)
		}
	}
	b.open("/ui/cells")
	require.Contains(t, b.text("#cell-0"), "Answers")

	// The session is only the link's, and no secret is in a page.
	stranger := newTab(t, b.origin)
	stranger.open("/ui/jobs")
	require.Contains(t, stranger.path(), "/ui/login")
	for _, path := range []string{"/ui/", "/ui/jobs", "/ui/cells", "/ui/settings"} {
		b.open(path)
		require.NotContains(t, value[string](b, `document.documentElement.outerHTML`), ofAllCells)
	}
}

func TestACellThatIsDownIsMissingAndSaidToBe(t *testing.T) {
	t.Parallel()
	cells, link := twoCells(t)
	var held [2]string
	for i, s := range cells {
		held[i] = s.submit(t, `{"jobType": "WORK", "payload": {}, "hold": true}`)
	}
	b := enter(t, link)
	b.expect("503")
	b.open("/ui/jobs")
	require.Contains(t, b.text("#job-"+held[1]), "cell 1")

	for name, outage := range map[string]struct{ begin, end func() error }{
		"it is killed": {cells[1].Kill, func() error { _, err := cells[1].Start(t.Context()); return err }},
		"it is silent": {
			func() error { return cells[1].Signal(syscall.SIGSTOP) },
			func() error { return cells[1].Signal(syscall.SIGCONT) },
		},
	} {
		b.open("/ui/")
		b.missing(false)
		require.NoError(t, outage.begin())
		within(t, soon, name, func() { b.open("/ui/jobs") })
		require.Contains(t, b.text("#job-"+held[0]), "Held", "%s: the other cell is shown", name)
		within(t, soon, name, func() { b.open("/ui/") })
		b.missing(true)
		require.Contains(t, b.text("#missing-1"), "with all its jobs")
		b.await(`document.querySelector("a.tile.held b").innerText == "1"`, name, "figures of the other")
		b.open("/ui/jobs")
		require.NotContains(t, b.text("main tbody"), "cell 1")
		within(t, soon, name, func() { b.run(chromedp.Navigate(b.origin + "/ui/jobs/" + held[1])) })
		require.Contains(t, b.text("h1"), "No answer")
		require.Contains(t, b.text("main"), "Cell 1, "+cells[1].origin)
		b.open("/ui/cells")
		require.Contains(t, b.text("#cell-1"), "Missing")

		b.open("/ui/jobs/" + held[0])
		b.press("Release")
		rigtest.Await(t, cells[0].Orchestrator, held[0], "COMPLETED")
		held[0] = cells[0].submit(t, `{"jobType": "WORK", "payload": {}, "hold": true}`)

		b.open("/ui/")
		require.NoError(t, outage.end())
		b.missing(false)
		b.await(`document.querySelector("a.tile.held b").innerText == "2"`, name, "figures of both")
		b.open("/ui/jobs")
		require.Contains(t, b.text("#job-"+held[1]), "cell 1")
	}
}

func TestPagesOfCellsAreAccessible(t *testing.T) {
	t.Parallel()
	cells, link := twoCells(t)
	for _, s := range cells {
		s.submit(t, `{"jobType": "WORK", "payload": {}, "hold": true}`)
	}
	b := enter(t, link)
	for _, path := range []string{"/ui/", "/ui/jobs", "/ui/cells", "/ui/schedules"} {
		b.open(path)
		b.everywhere()
	}
	require.NoError(t, cells[1].Kill())
	b.open("/ui/cells")
	b.missing(true)
	b.everywhere()
}
