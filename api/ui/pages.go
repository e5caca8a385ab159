package ui

import (
	"strings"

	"github.com/go-chi/chi/v5"

	"github.com/holdfast-jobs/holdfast/api/guard"
)

// page is an entry of the navigation.
type page struct {
	// path is that of its first view, below /ui.
	path, label string
	// key goes there, after g; empty for none.
	key string
	// scope is what callers need to see anything there.
	scope guard.Scope
	// allTenants is set if callers that are bound to a tenant see nothing there.
	allTenants bool
	// ofOneCell is set if several cells have nothing to show there together, ofCells if only
	// they have.
	ofOneCell, ofCells bool
	// routes adds its views and acts. A page without routes is not shown.
	routes func(*site, chi.Router)
}

// pages are in the order of the navigation.
func pages() []page {
	return []page{
		{
			path: "/", label: "Overview", key: "o", scope: guard.Observe,
			routes: (*site).overview,
			// Tenants see neither tallies nor queues.
			allTenants: true,
		},
		{
			path: "/jobs", label: "Jobs", key: "j", scope: guard.Observe,
			routes: (*site).jobs,
		},
		{
			path: "/workflows", label: "Workflows", key: "f", scope: guard.Read,
			routes: (*site).workflows,
		},
		{
			path: "/dead-letters", label: "Dead letters", key: "d", scope: guard.Observe,
			routes: (*site).deadLetters,
		},
		{
			path: "/types", label: "Job types", key: "t", scope: guard.Observe,
			routes:     (*site).types,
			allTenants: true,
		},
		{
			path: "/schedules", label: "Schedules", key: "s", scope: guard.Read,
			routes:    (*site).schedules,
			ofOneCell: true,
		},
		{
			path: "/workers", label: "Workers", key: "w", scope: guard.Observe,
			routes:     (*site).workers,
			ofOneCell:  true,
			allTenants: true,
		},
		{
			path: "/plugins", label: "Plugins", key: "p", scope: guard.Observe,
			routes:     (*site).plugins,
			ofOneCell:  true,
			allTenants: true,
		},
		{
			path: "/operations", label: "Operations", key: "b", scope: guard.Observe,
			routes: (*site).operations,
		},
		{
			path: "/audit", label: "Audit", key: "a", scope: guard.Observe,
			routes:    (*site).audit,
			ofOneCell: true,
		},
		{
			path: "/health", label: "Health", key: "h", scope: guard.Observe,
			routes:     (*site).health,
			ofOneCell:  true,
			allTenants: true,
		},
		{
			path: "/cells", label: "Cells", key: "c",
			routes:  (*site).cells,
			ofCells: true,
		},
		{
			path: "/settings", label: "Settings", key: "e",
			routes: (*site).settings,
		},
	}
}

// pageOf returns the path of the page that a path below /ui belongs to; empty for none.
func pageOf(path string) string {
	found := ""
	for _, p := range pages() {
		if p.path == path || p.path != "/" && strings.HasPrefix(path, p.path+"/") {
			found = p.path
		}
	}
	return found
}
