package ui

import (
	"net/http"
	"net/url"
	"strings"
	"time"

	"github.com/go-chi/chi/v5"

	v1 "github.com/holdfast-jobs/holdfast/api/v1"
)

// Cells are several servers, each of another cell, that the pages show as one. What names a job by
// its id is asked of its cell, lists and figures of those that answer. The API refuses everything
// else with 421.
type Cells interface {
	// Cells says how each is, always in the same order.
	Cells() []Cell
}

// Cell is one of several servers.
type Cell struct {
	// Name is for people: the number, or the address if nobody has said which it is.
	Name string
	// URL is where its own pages are, without /ui.
	URL string
	// Missing is why it is not part of lists and figures; empty if it is.
	Missing string
	// Since is when it stopped or began to answer.
	Since time.Time
}

// cellLink leads to the present page of the cell's own.
type cellLink struct {
	Cell

	To string
}

func (s *site) cells(r chi.Router) {
	r.Get("/cells", s.serve(func(*visit) (answer, error) { return view{Template: "cells", Title: "Cells"}, nil }))
}

// chooseCell answers for a page that each cell has its own of.
func (s *site) chooseCell(r chi.Router, path string) {
	choose := s.serve(func(*visit) (answer, error) { return nil, ofOneCell() })
	r.HandleFunc(path, choose)
	r.HandleFunc(path+"/*", choose)
}

func ofOneCell() *v1.Problem {
	return v1.NewProblem(http.StatusMisdirectedRequest, "each cell has this for itself")
}

// present has the names of the cells that answer. Figures of others are not shared with it.
func (s *site) present() string {
	if s.Cells == nil {
		return ""
	}
	var names []string
	for _, one := range s.Cells.Cells() {
		if one.Missing == "" {
			names = append(names, one.Name)
		}
	}
	return strings.Join(names, ",")
}

// ManyCells reports whether there are several that the caller may know of: strangers see no more
// than the page on which to log in.
func (f frame) ManyCells() bool { return f.Nav != nil && f.visit.Cells != nil }

// CellLinks are the cells, each with the way to the present page of its own.
func (f frame) CellLinks() []cellLink {
	if !f.ManyCells() {
		return nil
	}
	path := f.cellPath()
	var links []cellLink
	for _, one := range f.visit.Cells.Cells() {
		links = append(links, cellLink{one, one.URL + path})
	}
	return links
}

// Missing are the cells that do not answer.
func (f frame) Missing() []cellLink {
	var missing []cellLink
	for _, link := range f.CellLinks() {
		if link.Missing != "" {
			missing = append(missing, link)
		}
	}
	return missing
}

// cellPath is that of the present page in the UI of a cell, which knows no cursors of several.
func (f frame) cellPath() string {
	at := f.Path
	if pageOf(strings.TrimPrefix(f.request.URL.Path, Root)) == "/cells" {
		at = f.query("at")
	}
	u, err := url.Parse(at)
	if err != nil || !isOwn(at) {
		return Root + "/"
	}
	below := pageOf(strings.TrimPrefix(u.Path, Root))
	switch {
	case below == "" || below == "/cells":
		return Root + "/"
	case f.request.Method != http.MethodGet && f.request.Method != http.MethodHead:
		return Root + below // What was sent cannot be repeated there.
	}
	query := u.Query()
	query.Del("cursor")
	u.RawQuery = query.Encode()
	return u.RequestURI()
}
