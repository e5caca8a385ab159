package ui

import (
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"testing"

	"github.com/chromedp/chromedp"
	"github.com/chromedp/chromedp/kb"
	"github.com/stretchr/testify/require"

	"github.com/holdfast-jobs/holdfast/test/rig"
	"github.com/holdfast-jobs/holdfast/test/rig/rigtest"
)

// bury makes so many jobs that die of errors with the same fingerprint, and of which each dies
// again whenever it is requeued.
func (s *scene) bury(t *testing.T, n int, why string) (ids []string) {
	t.Helper()
	batch := make([]rig.Submission, n)
	for i := range batch {
		batch[i] = rig.Submission{JobType: "WORK", MaxAttempts: 1, Payload: map[string]any{"error": fmt.Sprintf(why, i)}}
	}
	ids, err := s.SubmitBatch(t.Context(), batch)
	require.NoError(t, err)
	for _, id := range ids {
		rigtest.Await(t, s.Orchestrator, id, "FAILED")
	}
	slices.Sort(ids)
	return ids
}

// operated waits until the operation of the page has ended, and each of the jobs once more.
func (b *tab) operated(s *scene, ids []string) {
	b.t.Helper()
	b.await(`document.querySelector("#operation-state")?.dataset.announce == "The operation is finished"`)
	for _, id := range ids {
		require.Eventually(b.t, func() bool { return s.attempts(b.t, id) == 2 }, patience, glance)
	}
}

// tabTo presses Tab until the element with the label has the focus. All that has it on the way
// must be seen to have it.
func (b *tab) tabTo(label string) {
	b.t.Helper()
	for range 200 {
		b.run(chromedp.KeyEvent(kb.Tab))
		if lost := value[string](b, unseen); lost != "" {
			require.Fail(b.t, "the focus is not seen", lost)
		}
		if value[bool](b, fmt.Sprintf(`(document.activeElement.innerText || document.activeElement.id || "").trim() == %q`, label)) {
			return
		}
	}
	require.Fail(b.t, "no Tab leads there", label)
}

// unseen is the element with the focus, unless people see that it has it.
const unseen = `(e => {
	const box = e.getBoundingClientRect(), style = getComputedStyle(e);
	const seen = e != document.body && style.outlineStyle != "none" && parseFloat(style.outlineWidth) >= 2 &&
		box.width > 0 && box.bottom > 0 && box.top < innerHeight && box.right > 0 && box.left < innerWidth;
	return seen ? "" : e.outerHTML.slice(0, 200);
})(document.activeElement)`

func TestDeadLetters(t *testing.T) {
	t.Parallel()
	s := newScene(t)
	addresses, cards, others := s.bury(t, 4, "order %d has no address"), s.bury(t, 3, "card %d was declined"), s.bury(t, 2, "no route to host %d")
	b := newTab(t, s.origin)
	b.login(s)

	t.Run("a group is requeued with keys only", func(t *testing.T) {
		b := b.in(t)
		b.open("/ui/")
		b.follow(func() { b.run(chromedp.KeyEvent("gd")) })
		require.Equal(t, "/ui/dead-letters", b.path())
		b.counted()
		b.tabTo("Requeue 4 jobs…")
		b.follow(func() { b.run(chromedp.KeyEvent(kb.Enter)) })
		require.Contains(t, b.text("main"), "The newest of them")
		b.tabTo("reason")
		b.run(chromedp.KeyEvent("the addresses are there again"))
		b.tabTo("Requeue 4 jobs")
		b.follow(func() { b.run(chromedp.KeyEvent(kb.Enter)) })
		require.Contains(t, b.text("main"), "the addresses are there again")
		b.operated(s, addresses)
	})

	t.Run("a list, its dry run and its execution have the same jobs", func(t *testing.T) {
		b := b.in(t)
		b.open("/ui/dead-letters")
		b.follow(func() {
			b.run(chromedp.Click(chromedp.Search(`//main//th//a[contains(., "was declined")]`), chromedp.NodeVisible))
		})
		listed := value[[]string](b, `Array.from(document.querySelectorAll("input[data-select]"), e => e.value).sort()`)
		require.Equal(t, cards, listed)
		b.counted()
		require.Contains(t, b.text("caption"), "3 jobs")
		b.follow(func() {
			b.run(chromedp.Click(chromedp.Search(`//main//a[contains(., "Act on all that match")]`), chromedp.NodeVisible))
		})
		require.Contains(t, b.text("#found"), "3 jobs")
		require.Equal(t, cards, value[[]string](b, `Array.from(document.querySelectorAll("main tbody a"), e => e.title).sort()`))
		b.press("Requeue 3 jobs")
		b.operated(s, cards)
		require.Contains(t, b.text("main dl"), "3 of 3")
		for _, id := range others {
			require.Equal(t, 1, s.attempts(t, id), "not in the group")
		}
	})

	t.Run("groups stay where they are until one asks for the news", func(t *testing.T) {
		b := b.in(t)
		const order = `Array.from(document.querySelectorAll("#groups-list [data-row]"), e => e.id)`
		const news = `document.querySelector("[data-changed]:not([hidden])")`
		b.open("/ui/dead-letters")
		before := value[[]string](b, order)
		for len(before) != 3 || !strings.Contains(b.text("#"+before[2]), "no route to host") {
			b.open("/ui/dead-letters") // The last figures may be from before the others died again.
			before = value[[]string](b, order)
		}
		require.False(t, value[bool](b, news+" != null"))

		s.bury(t, 1, "no route to host %d")
		b.await(news, "another group has the latest death")
		require.Contains(t, b.text("#"+before[2]), "3")
		require.Equal(t, before, value[[]string](b, order))
		s.bury(t, 1, "disk %d is full")
		b.follow(func() {
			b.run(chromedp.Click(chromedp.Search(`//main//a[contains(., "The list has changed")]`), chromedp.NodeVisible))
		})
		require.Equal(t, before[2], value[[]string](b, order+".filter(id => "+fmt.Sprintf("[%q, %q, %q]", before[0], before[1], before[2])+".includes(id))")[0], "the order is by the latest death again")
		b.await(news + ` || document.querySelector("#groups-list").innerText.includes("is full")`)
	})

	t.Run("no filter is no operation", func(t *testing.T) {
		b := b.in(t)
		b.expect("422")
		b.open("/ui/operations/new?action=requeue")
		require.Equal(t, 422, b.status())
		require.Contains(t, b.text("[role=alert]"), "all")
		require.Zero(t, value[int](b, `document.querySelectorAll("#found, form[action='/ui/operations']").length`))
		status, _, text := s.operator(t).send(http.MethodPost, "/ui/operations", url.Values{"action": {"requeue"}, "rate": {"100"}}, http.Header{"Origin": {s.origin}})
		require.Equal(t, 422, status, text)
		require.Equal(t, 1, s.attempts(t, others[0]))
	})

	t.Run("a cancel is asked for, and the focus returns", func(t *testing.T) {
		b := b.in(t)
		id := s.submit(t, `{"jobType": "WORK", "payload": {}, "hold": true}`)
		b.open("/ui/jobs/" + id)
		b.tabTo("Cancel")
		for range 2 {
			b.run(chromedp.KeyEvent(kb.Enter))
			b.await(`document.querySelector("dialog[open]")?.contains(document.activeElement)`)
			require.Empty(t, value[string](b, unseen))
			b.run(chromedp.KeyEvent(kb.Escape))
			b.await(`!document.querySelector("dialog[open]") && document.activeElement.innerText == "Cancel"`)
			require.Empty(t, value[string](b, unseen))
		}
		rigtest.Await(t, s.Orchestrator, id, "PENDING")
		b.run(chromedp.KeyEvent(kb.Enter))
		b.tabTo("Cancel the job")
		b.follow(func() { b.run(chromedp.KeyEvent(kb.Enter)) })
		rigtest.Await(t, s.Orchestrator, id, "CANCELED")
		require.Contains(t, b.text("#notice"), "The job was canceled.")
	})
}
