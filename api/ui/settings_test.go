package ui_test

import (
	"net/http"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestSettingsAreKeptInACookieOfTheUI(t *testing.T) {
	p := newPages(healthy())
	requireGolden(t, "settings", p.get("/ui/settings"))
	w := p.post("/ui/settings", "theme", "dark", "zone", "Europe/Berlin", "every", "10")
	require.Equal(t, 303, w.Code)
	require.Equal(t, "/ui/settings", w.Header().Get("Location"))
	cookies := map[string]*http.Cookie{}
	for _, cookie := range w.Result().Cookies() {
		cookies[cookie.Name] = cookie
		require.True(t, cookie.HttpOnly)
		require.Equal(t, "/ui", cookie.Path)
		require.Equal(t, http.SameSiteStrictMode, cookie.SameSite)
	}
	require.Contains(t, cookies, "hf_preferences")
	next := p.get("/ui/settings", "Cookie: "+w.Result().Cookies()[0].String()+"; hf_notice="+cookies["hf_notice"].Value)
	require.Contains(t, next.Body.String(), `<html lang="en" data-theme="dark">`)
	require.Contains(t, next.Body.String(), `<body data-every="10" data-zone="Europe/Berlin" data-keys="off">`)
	require.Contains(t, next.Body.String(), "Settings saved in this browser.")
	require.Contains(t, next.Header().Get("Set-Cookie"), "hf_notice=; Path=/ui; Max-Age=0", "and the notice is shown once")
}

func TestBadSettingsAreShownAtTheirFields(t *testing.T) {
	w := newPages(healthy()).post("/ui/settings", "theme", "pink", "zone", "Mars", "every", "0")
	require.Equal(t, 422, w.Code)
	requireGolden(t, "settings-refused", w)
	require.Empty(t, w.Header().Get("Set-Cookie"))
}

func TestForgedPreferencesAreIgnored(t *testing.T) {
	w := newPages(healthy()).get("/ui/settings", `Cookie: hf_preferences=theme=%22%3E&zone=../../etc&every=0; hf_notice=nonsense`)
	require.Equal(t, 200, w.Code)
	require.Contains(t, w.Body.String(), `<html lang="en">`)
	require.Contains(t, w.Body.String(), `<body data-every="2" data-zone="">`)
}
