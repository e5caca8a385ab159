package ui

import (
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"time"
)

const (
	preferencesCookie = "hf_preferences"
	keepPreferences   = 400 * 24 * 60 * 60 // As long as browsers do.
)

// preferences are what the user has set in this browser.
type preferences struct {
	// Theme is light or dark; empty for that of the system.
	Theme string
	// Zone is the name of the time zone; empty for that of the browser, and UTC without
	// JavaScript.
	Zone string
	// Every is how many seconds pass between two updates of a page.
	Every int
	// NoKeys turns the keys off.
	NoKeys bool
}

var (
	themes    = []string{"", "light", "dark"}
	intervals = []int{2, 5, 10, 30, 60}
)

// preferencesOf returns what the request's cookie says. What is no valid value is the default.
func preferencesOf(r *http.Request) preferences {
	p := preferences{Every: intervals[0]}
	cookie, err := r.Cookie(preferencesCookie)
	if err != nil {
		return p
	}
	set, _ := url.ParseQuery(cookie.Value)
	if theme := set.Get("theme"); slices.Contains(themes, theme) {
		p.Theme = theme
	}
	if _, err := time.LoadLocation(set.Get("zone")); err == nil {
		p.Zone = set.Get("zone")
	}
	if every, err := strconv.Atoi(set.Get("every")); err == nil && slices.Contains(intervals, every) {
		p.Every = every
	}
	p.NoKeys = set.Get("keys") == "off"
	return p
}

func (p preferences) save(w http.ResponseWriter, r *http.Request) {
	set := url.Values{"every": {strconv.Itoa(p.Every)}}
	if p.Theme != "" {
		set.Set("theme", p.Theme)
	}
	if p.Zone != "" {
		set.Set("zone", p.Zone)
	}
	if p.NoKeys {
		set.Set("keys", "off")
	}
	setCookie(w, r, preferencesCookie, set.Encode(), keepPreferences)
}

// location is the zone that times are shown in.
func (p preferences) location() *time.Location {
	if zone, err := time.LoadLocation(p.Zone); err == nil {
		return zone
	}
	return time.UTC
}
