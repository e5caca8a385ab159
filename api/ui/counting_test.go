package ui_test

import (
	"maps"
	"net/http"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	v1 "github.com/holdfast-jobs/holdfast/api/v1"
)

// counted is how long the pages of these tests wait for figures.
const counted = 150 * time.Millisecond

// counter counts jobs only once that is allowed.
type counter struct{ allowed chan struct{} }

// stop lets all that begins from now on wait for allow, at the latest at the end of the test.
func (c *counter) stop(t *testing.T) (allow func()) {
	c.allowed = make(chan struct{})
	allow = sync.OnceFunc(func() { close(c.allowed) })
	t.Cleanup(allow)
	return allow
}

// answers is a fake API with something on every page, whose figures come from the counter.
func (c *counter) answers() map[string]any {
	answers := healthy()
	maps.Copy(answers, someTypes())
	answers["GET /dead-letter/groups"] = v1.DeadLetterGroups{Groups: []v1.DeadLetterGroup{{JobType: "SEND_EMAIL", Message: "it broke", Count: 77}}}
	answers["GET /debug/jobs"] = v1.FoundJobs{Jobs: []v1.FoundJob{{}}}
	answers["GET /debug/jobs/count"] = v1.JobCount{Count: 77}
	for _, call := range []string{"GET /metrics", "GET /debug/series", "GET /dead-letter/groups", "GET /debug/jobs/count"} {
		answer := answers[call]
		answers[call] = func(r *http.Request) any {
			<-c.allowed
			if compute, ok := answer.(func(*http.Request) any); ok {
				return compute(r)
			}
			return answer
		}
	}
	return answers
}

func TestPagesAppearWhileJobsAreCounted(t *testing.T) {
	for path, wants := range map[string]struct{ meanwhile, counted string }{
		"/ui/":                 {`aria-label="Window"`, "12,345"},
		"/ui/?minutes=1440":    {`aria-label="Window"`, "12,345"},
		"/ui/types":            {"Job types", "SEND_EMAIL"},
		"/ui/types/SEND_EMAIL": {"Set limit", `<a class="tile dead" href="/ui/jobs?jobType=SEND_EMAIL&amp;state=dead"><b>7</b>`},
		"/ui/types/FAX":        {`data-retry="2"`, "12,345"},
		"/ui/types/NOBODYS":    {`data-retry="2"`, "<h1>Not found"},
		"/ui/dead-letters":     {`name="tenant"`, "it broke"},
		"/ui/jobs?state=dead":  {"They are being counted.", "77 jobs, newest first"},
	} {
		t.Run(path, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				jobs := &counter{}
				allow := jobs.stop(t)
				p := newPagesWithin(0, nil, jobs.answers())
				asked := time.Now()
				for range 2 {
					w := p.get(path)
					require.Equal(t, 200, w.Code)
					require.Contains(t, w.Body.String(), wants.meanwhile)
					require.NotContains(t, w.Body.String(), wants.counted)
					require.Contains(t, w.Body.String(), `id="counting"`)
				}
				require.Equal(t, counted, time.Since(asked), "only the first waits")
				allow()
				synctest.Wait()
				w := p.get(path)
				require.Contains(t, w.Body.String(), wants.counted)
				require.NotContains(t, w.Body.String(), `id="counting"`)
			})
		})
	}
}

func TestPagesShowTheLastFiguresWhileJobsAreCountedAnew(t *testing.T) {
	for path, want := range map[string]string{
		"/ui/": "12,345", "/ui/types": "12,345", "/ui/types/FAX": "12,345", "/ui/dead-letters": "it broke",
	} {
		t.Run(path, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				jobs := &counter{}
				jobs.stop(t)()
				p := newPagesWithin(0, nil, jobs.answers())
				require.Contains(t, p.get(path).Body.String(), want)
				time.Sleep(time.Hour)
				allow := jobs.stop(t)
				asked := time.Now()
				w := p.get(path)
				require.Equal(t, counted, time.Since(asked))
				require.Contains(t, w.Body.String(), want)
				require.Contains(t, w.Body.String(), "Figures are from 00:00:00")
				allow()
				synctest.Wait()
				require.Contains(t, p.get(path).Body.String(), "Figures are from 01:00:00")
			})
		})
	}
}

// Whoever may see nothing is not told that it is being counted.
func TestWhatIsCountedIsRefusedAtOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		jobs := &counter{}
		jobs.stop(t)
		p := newPagesWithin(0, closed(), jobs.answers())
		for path, token := range map[string]string{
			"/ui/types": "client", "/ui/types/FAX": "client", "/ui/dead-letters": "client", "/ui/jobs": "client", "/ui/": "client",
		} {
			require.Equal(t, 403, p.get(path, "Authorization: Bearer "+token).Code, path)
		}
		for _, path := range []string{"/ui/types", "/ui/types/FAX"} {
			require.Equal(t, 403, p.get(path, "Authorization: Bearer acme").Code, path)
		}
		require.Equal(t, 200, p.get("/ui/dead-letters", "Authorization: Bearer acme").Code)
	})
}
