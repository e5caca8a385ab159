package ui

import (
	"net/http"
	"net/url"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// personal are the forms that change nothing but what the browser remembers, or nothing at all.
var personal = []string{"/ui/login", "/ui/logout", "/ui/settings", "/ui/health"}

// acts are the forms with which somebody changes something, one of each kind.
func acts(forms []form) (found []form) {
	seen := make(map[string]bool)
	for _, f := range forms {
		if f.fields.Has("preview") || f.fields.Has("edit") {
			continue // They show the form again, and change nothing.
		}
		path, _, _ := strings.Cut(f.action, "?")
		if kind := kindOfAct(path) + " " + f.fields.Get("act"); f.method == http.MethodPost && !slices.Contains(personal, path) && !seen[kind] {
			seen[kind] = true
			found = append(found, f)
		}
	}
	return found
}

// kindOfAct is the path without the identifiers of things.
func kindOfAct(path string) string {
	parts := strings.Split(path, "/")
	for i := range parts {
		if identifier.MatchString(parts[i]) {
			parts[i] = "*"
		}
	}
	return strings.Join(parts, "/")
}

// state is what a form could change, and what does not change by itself.
func (s *scene) state(t testing.TB) map[string]int {
	t.Helper()
	var counted struct{ StatusCounts map[string]int }
	require.NoError(t, s.Call(t.Context(), http.MethodGet, "/metrics", nil, http.StatusOK, &counted))
	all := counted.StatusCounts
	return map[string]int{
		"dead": all["dead"], "canceled": all["canceled"], "held or scheduled": all["created"],
		"open": all["queued"] + all["retry"] + all["running"],
	}
}

func TestAFormOfAnotherOriginIsRefused(t *testing.T) {
	t.Parallel()
	s, _ := full(t)
	in := s.operator(t)
	_, forms := in.crawl()
	require.NotEmpty(t, acts(forms))
	before := s.state(t)
	for _, f := range acts(forms) {
		for name, header := range map[string]http.Header{
			"a foreign page":                    {"Origin": {"https://evil.example"}, "Sec-Fetch-Site": {"cross-site"}},
			"a sibling":                         {"Origin": {"http://other." + s.Address}, "Sec-Fetch-Site": {"same-site"}},
			"a foreign page in an old browser":  {"Origin": {"https://evil.example"}},
			"a page that does not say where":    {"Origin": {"null"}},
			"a foreign page without its origin": {"Sec-Fetch-Site": {"cross-site"}},
		} {
			status, _, _ := in.send(http.MethodPost, f.action, f.fields, header)
			assert.Equal(t, http.StatusForbidden, status, "%s from %s", f.action, name)
		}
	}
	require.Equal(t, before, s.state(t))
}

func TestTheSessionOpensNothingButPages(t *testing.T) {
	t.Parallel()
	s, jobs := full(t)
	in := s.operator(t)
	status, _, _ := in.send(http.MethodGet, "/ui/", nil, nil)
	require.Equal(t, http.StatusOK, status)
	for _, path := range []string{
		"/jobs", "/jobs/" + jobs["dead"], "/debug/jobs", "/debug/jobs/" + jobs["dead"], "/debug/workers", "/debug/plugins", "/debug/doctor",
		"/metrics", "/dead-letter", "/schedules", "/workflows", "/job-types", "/events", "/erasures", "/debug/limits", "/debug/pauses",
	} {
		status, _, _ := in.send(http.MethodGet, path, nil, nil)
		assert.Equal(t, http.StatusUnauthorized, status, path)
	}
	for _, path := range []string{"/jobs/" + jobs["dead"] + "/requeue", "/jobs/" + jobs["running"] + "/cancel", "/dead-letter/retry"} {
		status, _, _ := in.send(http.MethodPost, path, nil, http.Header{"Origin": {s.origin}})
		assert.Equal(t, http.StatusUnauthorized, status, path)
	}
}

func TestWhoMayObserveChangesNothingAndSeesNoPayload(t *testing.T) {
	t.Parallel()
	s, jobs := full(t)
	_, forms := s.operator(t).crawl()
	observing := s.holder(t, observer)
	pages, offered := observing.crawl()
	require.Greater(t, len(pages), 5)
	for path, text := range pages {
		assert.NotContains(t, text, secretOfPayload, path)
	}
	for _, path := range []string{"/ui/jobs/" + jobs["scheduled"], "/ui/jobs/" + jobs["dead"]} {
		_, _, text := observing.send(http.MethodGet, path, nil, nil)
		assert.NotContains(t, text, secretOfPayload, path)
	}
	refused, _, _ := observing.send(http.MethodGet, "/ui/jobs/"+jobs["large"]+"/payload?of=payload", nil, nil)
	assert.Equal(t, http.StatusForbidden, refused)
	_, _, found := observing.send(http.MethodGet, "/ui/jobs?payload="+secretOfPayload, nil, nil)
	assert.NotContains(t, found, jobs["scheduled"], "a search must not tell what payloads contain")
	for _, f := range offered {
		if f.method == http.MethodPost && !slices.Contains(personal, f.action) {
			assert.True(t, f.off, "%s offers %s %v", f.page, f.action, f.fields["act"])
		}
	}
	before := s.state(t)
	for _, f := range acts(forms) {
		status, _, _ := observing.send(http.MethodPost, f.action, f.fields, http.Header{"Origin": {s.origin}})
		assert.Equal(t, http.StatusForbidden, status, f.action)
	}
	require.Equal(t, before, s.state(t))

	reading := s.holder(t, reader)
	_, _, text := reading.send(http.MethodGet, "/ui/jobs/"+jobs["scheduled"], nil, nil)
	require.Contains(t, text, secretOfPayload, "it is seen by those who may")
	_, _, found = reading.send(http.MethodGet, "/ui/jobs?payload="+secretOfPayload, nil, nil)
	require.Contains(t, found, jobs["scheduled"], "and found")
}

func TestATenantSeesNothingOfAnother(t *testing.T) {
	t.Parallel()
	s, jobs := full(t)
	in := s.holder(t, ofShop)
	pages, _ := in.crawl()
	require.Greater(t, len(pages), 3)
	for path, text := range pages {
		assert.NotContains(t, text, otherTenant, path)
	}
	status, _, _ := in.send(http.MethodGet, "/ui/jobs/"+jobs["other"], nil, nil)
	require.Equal(t, http.StatusNotFound, status)
	for _, query := range []url.Values{{"tenant": {otherTenant}}, {"tag": {otherTenant + "-tag"}}, {"q": {jobs["other"]}}} {
		_, _, text := in.send(http.MethodGet, "/ui/jobs?"+query.Encode(), nil, nil)
		assert.NotContains(t, text, otherTenant+" 9 burns", "%v", query)
		assert.NotContains(t, text, "/ui/jobs/"+jobs["other"], "%v", query)
	}
	_, _, text := in.send(http.MethodGet, "/ui/jobs/"+jobs["shop"], nil, nil)
	require.Contains(t, text, "shop 1 is closed", "its own")
}
