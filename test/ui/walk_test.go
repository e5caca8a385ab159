package ui

import (
	"net/url"
	"regexp"
	"slices"
	"strings"
)

// identifier is the part of a path that names one of many things of the same kind.
var identifier = regexp.MustCompile(`^(?:[0-9a-f]{8}-[0-9a-f-]{27}|[0-9a-f]{16,}|[0-9]+)$`)

// navigation are the paths in the navigation of the page.
func (b *tab) navigation() []string {
	b.t.Helper()
	return value[[]string](b, `Array.from(document.querySelectorAll("nav a[href]"), a => a.getAttribute("href"))`)
}

// links are the paths of all links on the page that stay within the UI.
func (b *tab) links() []string {
	b.t.Helper()
	return value[[]string](b, `Array.from(document.querySelectorAll("a[href]"), a => new URL(a.getAttribute("href"), location))
		.filter(u => u.origin == location.origin && u.pathname.startsWith("/ui/") && !u.pathname.startsWith("/ui/assets/"))
		.map(u => u.pathname + u.search)`)
}

// walk visits every page in the navigation, and one of every kind that they link to, and calls
// look on each. New pages are found by themselves.
func (b *tab) walk(look func(path string)) []string {
	b.t.Helper()
	b.open("/ui/")
	waiting := append([]string{"/ui/"}, b.navigation()...)
	seen := make(map[string]bool)
	var visited []string
	for len(waiting) > 0 {
		path := waiting[0]
		waiting = waiting[1:]
		kind := kindOf(path)
		if seen[kind] {
			continue
		}
		seen[kind] = true
		b.open(path)
		if answered := b.status(); answered != 200 {
			b.t.Errorf("%s answers %d", path, answered)
			continue
		}
		visited = append(visited, path)
		look(path)
		waiting = append(waiting, b.links()...)
	}
	slices.Sort(visited)
	return visited
}

// kindOf is the path without what names a particular thing, and of its query only the names.
// Pages of the same kind have the same template.
func kindOf(path string) string {
	u, err := url.Parse(path)
	if err != nil {
		return path
	}
	parts := strings.Split(u.Path, "/")
	for i, part := range parts {
		// What follows the name of a page, as in /ui/types/WORK, names one of its things.
		if identifier.MatchString(part) || i == 3 && part != "" && part != "new" {
			parts[i] = "*"
		}
	}
	return strings.Join(parts, "/")
}

// status is that of the page's answer.
func (b *tab) status() int {
	b.t.Helper()
	return value[int](b, `performance.getEntriesByType("navigation")[0].responseStatus`)
}
