package ui

import (
	"fmt"
	"net/http"
	"testing"

	"github.com/chromedp/chromedp"
	"github.com/stretchr/testify/require"
)

// listen notes from now on what the page announces to screen readers.
func (b *tab) listen() {
	b.t.Helper()
	value[bool](b, `window.heard = []; new MutationObserver(() => heard.push(document.querySelector("#announce").textContent))
		.observe(document.querySelector("#announce"), {childList: true, characterData: true, subtree: true}); true`)
}

// heardSoFar is what was announced since.
func (b *tab) heardSoFar() []string {
	b.t.Helper()
	return value[[]string](b, "heard")
}

// polled waits until the page has been refreshed so many times more.
func (b *tab) polled(times int) {
	b.t.Helper()
	parts := value[int](b, `document.querySelectorAll("[data-live]").length`)
	n := b.sent()
	// One may have been under way.
	require.Eventually(b.t, func() bool { return b.polls(n) > times*parts }, patience, glance, "the page is refreshed")
}

func TestChangesOfStateAreAnnouncedOnce(t *testing.T) {
	t.Parallel()
	s := newScene(t)
	id := s.submit(t, `{"jobType": "WORK", "payload": {}, "delay": "26h"}`)
	b := newTab(t, s.origin)
	b.login(s)
	b.open("/ui/jobs/" + id)
	b.listen()
	b.polled(2)
	require.Empty(t, b.heardSoFar(), "nothing has changed")
	s.call(t, http.MethodPost, "/jobs/"+id+"/hold", nil, http.StatusOK)
	b.await(`heard.length > 0`)
	b.polled(2)
	require.Equal(t, []string{"Held"}, b.heardSoFar())
	s.call(t, http.MethodPost, "/jobs/"+id+"/cancel", nil, http.StatusOK)
	b.await(`heard.length > 1`)
	b.polled(2)
	require.Equal(t, []string{"Held", "Canceled"}, b.heardSoFar())
}

// place is where the rows of a list are, and what is done with them.
type place struct {
	Tops    map[string]int
	Ticked  []string
	Focused string
}

const places = `({
	tops: Object.fromEntries(Array.from(document.querySelectorAll("[data-row]"), e => [e.id, Math.round(e.getBoundingClientRect().top)])),
	ticked: Array.from(document.querySelectorAll("input[data-select]:checked"), e => e.value).sort(),
	focused: document.activeElement.id,
})`

func TestRowsKeepTheirPlacesWhileJobsArriveAndLeave(t *testing.T) {
	t.Parallel()
	s := newScene(t)
	submit := func(n int) []string {
		batch := make([]map[string]any, n)
		for i := range batch {
			batch[i] = map[string]any{"jobType": "NOBODY_SERVES_THIS", "payload": map[string]any{"n": i}}
		}
		var accepted struct{ Jobs []struct{ JobID string } }
		require.NoError(t, s.Call(t.Context(), http.MethodPost, "/jobs/batch", batch, http.StatusAccepted, &accepted))
		ids := make([]string, n)
		for i, one := range accepted.Jobs {
			ids[i] = one.JobID
		}
		return ids
	}
	ids := submit(30)
	b := newTab(t, s.origin)
	b.login(s)
	b.open("/ui/jobs?state=queued")
	require.Equal(t, 30, value[int](b, `document.querySelectorAll("[data-row]").length`))
	b.run(chromedp.KeyEvent("jxjjxjjjxjjj")) // It ticks three rows, and stays on another.
	before := value[place](b, places)
	require.Len(t, before.Ticked, 3)
	require.Equal(t, "job-", before.Focused[:4])
	b.listen()

	// Some leave the list: a ticked one, the focused one, and the first and the last of all.
	leave := []string{before.Ticked[1], before.Focused[len("job-"):], ids[0], ids[29]}
	for i, id := range leave {
		submit(400)
		s.call(t, http.MethodPost, "/jobs/"+id+"/cancel", nil, http.StatusOK)
		b.await(fmt.Sprintf(`document.querySelectorAll("tr.gone").length == %d`, i+1))
		require.Equal(t, before, value[place](b, places))
	}
	b.await(`/new jobs – Show/.test(document.querySelector("#jobs-news").innerText)`)
	submit(400)
	b.polled(2)
	require.Equal(t, before, value[place](b, places))
	require.Contains(t, b.text("tr.gone"), "No longer matches")
	require.Empty(t, b.heardSoFar(), "quiet polls are not announced")

	b.follow(func() { b.click("#jobs-news a") })
	require.Equal(t, 50, value[int](b, `document.querySelectorAll("[data-row]:not(.gone)").length`))
	require.NotContains(t, value[place](b, places).Tops, before.Focused)
}
