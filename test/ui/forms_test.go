package ui

import (
	"fmt"
	"testing"

	"github.com/chromedp/cdproto/emulation"
	"github.com/chromedp/chromedp"
	"github.com/chromedp/chromedp/kb"
	"github.com/stretchr/testify/require"

	"github.com/holdfast-jobs/holdfast/test/rig/rigtest"
)

// press clicks on the first button of the page's content with the label.
func (b *tab) press(label string) {
	b.t.Helper()
	b.follow(func() {
		b.run(chromedp.Click(chromedp.Search(fmt.Sprintf(`//main//button[contains(., %q) and not(@disabled) and not(ancestor::dialog[not(@open)])]`, label)), chromedp.NodeVisible))
	})
}

func TestPagesWorkWithoutJavaScript(t *testing.T) {
	t.Parallel()
	s, jobs := full(t)
	b := newTab(t, s.origin)
	order(b, emulation.SetScriptExecutionDisabled, emulation.SetScriptExecutionDisabledParams{Value: true})
	b.login(s)
	b.open("/ui/jobs")
	require.Contains(t, b.text("main"), "Scheduled")
	b.click(`input[name=state][value=dead]`)
	b.press("Filter")
	require.Contains(t, b.path(), "state=dead")
	states := value[[]string](b, `Array.from(document.querySelectorAll("main tbody td[data-label=State]"), e => e.innerText.trim())`)
	require.NotEmpty(t, states)
	for _, state := range states {
		require.Contains(t, state, "Dead")
	}

	b.open("/ui/jobs/" + jobs["dead"])
	require.Contains(t, b.text("main"), "order 4711 has no address")
	before := s.attempts(t, jobs["dead"])
	b.press("Requeue")
	require.Equal(t, "/ui/jobs/"+jobs["dead"], b.path())
	require.Eventually(t, func() bool { return s.attempts(t, jobs["dead"]) == before+1 }, patience, glance, "it runs once more")
	b.open("/ui/jobs/" + jobs["scheduled"])
	b.press("Hold")
	require.Contains(t, b.text("#job-state"), "Held")
	b.press("Undo")
	require.Contains(t, b.text("#job-state"), "Scheduled")
	b.press("Cancel")
	require.Contains(t, b.text("h1"), "Cancel this job?")
	b.press("Cancel the job")
	rigtest.Await(t, s.Orchestrator, jobs["scheduled"], "CANCELED")
	b.open("/ui/jobs/" + jobs["scheduled"])
	require.Contains(t, b.text("main"), "Canceled")
}

func TestKeysDoNothingElseWhileSomebodyTypes(t *testing.T) {
	t.Parallel()
	s, _ := full(t)
	b := newTab(t, s.origin)
	b.login(s)
	b.walk(func(path string) {
		for i := range value[int](b, `(window.fields = Array.from(document.querySelectorAll("input:not([type=checkbox], [type=radio], [type=hidden], [disabled], [readonly])"))
				.filter(e => e.checkVisibility())).length`) {
			value[bool](b, fmt.Sprintf(`fields[%d].value = ""; fields[%d].focus(); true`, i, i))
			b.run(chromedp.KeyEvent("rjx.?gd"))
			if typed := value[string](b, fmt.Sprintf(`fields[%d].value`, i)); typed != "" { // a field for numbers takes none of them
				require.Equal(t, "rjx.?gd", typed, path)
			}
			require.Equal(t, path, b.path())
			require.Zero(t, value[int](b, `document.querySelectorAll("dialog[open], [aria-pressed=true]").length`), path)
		}
	})
}

// The help opens with a key, and the focus returns when it closes.
func TestDialogsReturnTheFocus(t *testing.T) {
	t.Parallel()
	s := newScene(t)
	b := newTab(t, s.origin)
	b.login(s)
	b.open("/ui/")
	value[bool](b, `document.querySelector("nav a").focus(); true`)
	b.run(chromedp.KeyEvent("?"))
	b.await(`document.querySelector("dialog[open]")?.contains(document.activeElement)`)
	b.run(chromedp.KeyEvent(kb.Escape))
	b.await(`document.activeElement == document.querySelector("nav a")`)
	require.NotEqual(t, "none", value[string](b, `getComputedStyle(document.activeElement).outlineStyle`), "the focus is seen")
	b.run(chromedp.KeyEvent("gh"))
	b.await(`location.pathname == "/ui/health"`)
}
