package ui

import (
	"time"

	"github.com/holdfast-jobs/holdfast/api/ui/snapshot"
)

// act is a button that does something: a form of its own. See "act" in parts.html.
type act struct {
	// To is the path of the form, Label what the button says.
	To, Label string
	// Denied says why the button is disabled; empty if it is not.
	Denied string
	// Back is where the browser goes afterwards.
	Back string
	// Class is danger for what cannot be undone; empty otherwise.
	Class string
	// Dialog is the id of the dialog that asks first; empty for none. Without JavaScript, a page asks.
	Dialog string
	// Fields are sent as well.
	Fields map[string]any
}

// newAct makes an act of the frame. scope is what it needs. pairs are the names and values of
// fields; the name class sets the class.
func newAct(f frame, scope, to, label string, pairs ...any) (act, error) {
	fields, err := dict(pairs...)
	if err != nil {
		return act{}, err
	}
	made := act{To: to, Label: label, Denied: f.Denied(scope), Back: f.Path, Fields: fields}
	if class, ok := fields["class"].(string); ok {
		made.Class = class
		delete(fields, "class")
	}
	return made, nil
}

// staleness says how old figures are. See "stale" in parts.html.
type staleness struct {
	// For is since when they cannot be read any more; empty if they can, but only now and then.
	For   string
	Clock string
}

// fresh is how old figures may be without a word.
const fresh = 10 * time.Second

// isOld reports whether a page says how old its figures are.
func isOld(at, now time.Time) bool { return now.Sub(at) > fresh }

// newStale returns nil for figures that are fresh, and if there are none yet.
func newStale(f frame, failing, at time.Time) *staleness {
	switch {
	case at.IsZero():
		return nil
	case failing.IsZero() && isOld(at, f.now):
		return &staleness{Clock: f.Clock(at)}
	case failing.IsZero():
		return nil
	}
	return &staleness{For: took(f.now.Sub(failing).Truncate(time.Second)), Clock: f.Clock(at)}
}

// oldest joins what is known of several figures: since when one fails, and when the oldest was
// read.
func oldest[T any](at, failing time.Time, figures snapshot.Figures[T]) (time.Time, time.Time) {
	if at.IsZero() || !figures.Pending() && figures.At.Before(at) {
		at = figures.At
	}
	if !figures.Failing.IsZero() && (failing.IsZero() || figures.Failing.Before(failing)) {
		failing = figures.Failing
	}
	return at, failing
}
