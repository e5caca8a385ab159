package ui

import (
	"encoding/json"
	"fmt"
	"os"
	"strings"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"
)

// axe is the library that finds what keeps people with a disability out.
var axe = sync.OnceValues(func() (string, error) {
	text, err := os.ReadFile("testdata/axe/node_modules/axe-core/axe.min.js")
	if err != nil {
		return "", fmt.Errorf("%w; make test-ui installs it", err)
	}
	return string(text), nil
})

// check runs the rules of WCAG 2.2 A and AA. target-size is off unless it is asked for.
const check = `axe.run(document, {
	runOnly: {type: "tag", values: ["wcag2a", "wcag2aa", "wcag21a", "wcag21aa", "wcag22aa"]},
	rules: {"target-size": {enabled: true}},
	resultTypes: ["violations"],
}).then(found => JSON.stringify(found.violations.map(v => ({id: v.id, help: v.help,
	nodes: v.nodes.map(n => n.target.join(" ") + "  " + n.html.slice(0, 160) + "\n      " + n.failureSummary.replace(/\n\s*/g, "; "))}))))`

type violation struct {
	ID, Help string
	Nodes    []string
}

// accessible checks the page as it is.
func (b *tab) accessible(as string) {
	b.t.Helper()
	source, err := axe()
	require.NoError(b.t, err)
	if !value[bool](b, `"axe" in window`) {
		value[bool](b, source+"\n;true")
	}
	var found []violation
	require.NoError(b.t, json.Unmarshal([]byte(value[string](b, check)), &found))
	for _, v := range found {
		b.t.Errorf("%s, %s: %s (%s)\n    %s", b.path(), as, v.Help, v.ID, strings.Join(v.Nodes[:min(3, len(v.Nodes))], "\n    "))
	}
}

var looks = []struct {
	width int64
	theme string
}{{1280, "light"}, {1280, "dark"}, {375, "dark"}, {375, "light"}}

// everywhere checks the page in every theme and width, with all its details, also with its
// dialogs open.
func (b *tab) everywhere() {
	b.t.Helper()
	value[bool](b, `document.querySelectorAll("details").forEach(d => d.open = true); true`)
	for _, l := range looks {
		as := fmt.Sprintf("%d px, %s", l.width, l.theme)
		b.look(l.width, l.theme)
		b.accessible(as)
		b.fits(as)
		for i := range value[int](b, `document.querySelectorAll("dialog").length`) {
			value[bool](b, fmt.Sprintf(`document.querySelectorAll("dialog")[%d].showModal(); true`, i))
			b.accessible(as + ", with a dialog")
			b.fits(as + ", with a dialog")
			value[bool](b, fmt.Sprintf(`document.querySelectorAll("dialog")[%d].close(); true`, i))
		}
	}
	b.look(1280, "light")
}

// fits checks that nothing is wider than the window, and that what one clicks is not too small.
func (b *tab) fits(as string) {
	b.t.Helper()
	if wide := value[int](b, `document.documentElement.scrollWidth - document.documentElement.clientWidth`); wide > 0 {
		b.t.Errorf("%s, %s: the page scrolls sideways by %d px: %v", b.path(), as, wide, value[[]string](b, wider))
	}
	if small := value[[]string](b, small); len(small) > 0 {
		b.t.Errorf("%s, %s: less than 24 px: %v", b.path(), as, small)
	}
}

// wider names the innermost elements that end outside of the window, and do not scroll.
const wider = `Array.from(document.querySelectorAll("body *")).filter(e => {
	for (let up = e.parentElement; up; up = up.parentElement)
		if (getComputedStyle(up).overflowX != "visible") return false;
	return e.getBoundingClientRect().right > document.documentElement.clientWidth + 0.5;
}).slice(-3).map(e => e.outerHTML.slice(0, 120))`

// small names controls that are too small to hit. Links within text may be.
const small = `Array.from(document.querySelectorAll("button, select, summary, input:not([type=hidden])")).filter(e => !e.closest("[aria-hidden=true]")).filter(e => {
	const box = (e.closest("label") || e).getBoundingClientRect();
	return e.checkVisibility({visibilityProperty: true}) && box.width > 1 && (box.width < 24 || box.height < 24);
}).slice(0, 3).map(e => e.outerHTML.slice(0, 120))`

func TestEveryPageIsAccessible(t *testing.T) {
	t.Parallel()
	for name, begin := range map[string]func(testing.TB) (*scene, cast){
		"with data": func(t testing.TB) (*scene, cast) { return full(t) },
		"empty":     func(t testing.TB) (*scene, cast) { return newScene(t), nil },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s, jobs := begin(t)
			b := newTab(t, s.origin)
			b.open("/ui/login")
			b.everywhere()
			b.login(s)
			visited := b.walk(func(string) { b.everywhere() })
			t.Logf("%d pages: %v", len(visited), visited)
			for _, what := range []string{"running", "retrying", "hostile", "logs"} {
				if id := jobs[what]; id != "" {
					b.open("/ui/jobs/" + id)
					b.everywhere()
				}
			}
			b.expect("422")
			b.open("/ui/jobs?state=dead&tag=none&createdFrom=yesterday")
			b.everywhere()
		})
	}
}
