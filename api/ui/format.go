package ui

import (
	"bytes"
	"compress/gzip"
	"errors"
	"fmt"
	"html/template"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/holdfast-jobs/holdfast/runtime/job"
)

// functions are what all templates can call.
var functions = template.FuncMap{
	"asset": asset, "count": count, "took": took, "state": stateOf, "workflow": workflowState, "short": shortID, "act": newAct,
	"stale": newStale, "plural": plural, "join": strings.Join, "dict": dict,
}

// fullTime is how instants are written.
const fullTime = "2006-01-02 15:04:05 MST"

// When shows an instant, a time.Time or a pointer to one: within a day relative to now, and always
// with the exact time, which also shows when the mouse or the focus is on it. nil is a dash.
func (f frame) When(at any) template.HTML {
	var instant time.Time
	switch at := at.(type) {
	case time.Time:
		instant = at
	case *time.Time:
		if at != nil {
			instant = *at
		}
	}
	if instant.IsZero() {
		return "–"
	}
	exact := instant.In(f.prefs.location())
	text := relative(f.now.Sub(instant))
	if text == "" {
		text = exact.Format("2006-01-02 15:04")
	}
	return template.HTML(fmt.Sprintf(`<time datetime="%s" title="%s" data-time>%s</time>`,
		instant.UTC().Format(time.RFC3339Nano), template.HTMLEscapeString(exact.Format(fullTime)), text))
}

// Exact is an instant as a text, to the second.
func (f frame) Exact(at time.Time) string { return at.In(f.prefs.location()).Format(fullTime) }

// Clock is the time of the day, for figures of today.
func (f frame) Clock(at time.Time) string { return at.In(f.prefs.location()).Format("15:04:05") }

// relative is empty for more than a day. app.js has the same words.
func relative(ago time.Duration) string {
	words := func(d time.Duration) string {
		switch {
		case d < time.Minute:
			return fmt.Sprintf("%d s", int(d.Seconds()))
		case d < time.Hour:
			return fmt.Sprintf("%d min", int(d.Minutes()))
		default:
			return fmt.Sprintf("%d h", int(d.Hours()))
		}
	}
	switch {
	case ago >= 24*time.Hour || ago <= -24*time.Hour:
		return ""
	case ago > -time.Second && ago < time.Second:
		return "now"
	case ago < 0:
		return "in " + words(-ago)
	default:
		return words(ago) + " ago"
	}
}

// count writes a whole number with commas: 12,345.
func count(n any) string {
	text := fmt.Sprint(n)
	sign := ""
	if strings.HasPrefix(text, "-") {
		sign, text = "-", text[1:]
	}
	for at := len(text) - 3; at > 0; at -= 3 {
		text = text[:at] + "," + text[at:]
	}
	return sign + text
}

// took writes a duration, in seconds or as time.Duration, with about three digits.
func took(d any) string {
	var seconds float64
	switch d := d.(type) {
	case time.Duration:
		seconds = d.Seconds()
	case float64:
		seconds = d
	}
	switch {
	case seconds <= 0:
		return "0 s"
	case seconds < 0.9995: // More would be rounded to 1e+03.
		return strconv.FormatFloat(seconds*1000, 'g', 3, 64) + " ms"
	case seconds < 60:
		return strconv.FormatFloat(seconds, 'g', 3, 64) + " s"
	case seconds < 3600:
		return fmt.Sprintf("%d min %d s", int(seconds)/60, int(seconds)%60)
	case seconds < 86400:
		return fmt.Sprintf("%d h %d min", int(seconds)/3600, int(seconds)/60%60)
	default:
		return fmt.Sprintf("%d d %d h", int(seconds)/86400, int(seconds)/3600%24)
	}
}

// plural is the number with the word for one or for more.
func plural(n any, one, more string) string {
	if text := fmt.Sprint(n); text != "1" {
		return count(n) + " " + more
	}
	return "1 " + one
}

// shortID is the end of an id, which differs even among jobs of the same moment.
func shortID(id any) string {
	text := fmt.Sprint(id)
	return text[max(0, len(text)-8):]
}

// dict makes a map of names and values, for templates within templates.
func dict(pairs ...any) (map[string]any, error) {
	if len(pairs)%2 != 0 {
		return nil, errors.New("dict needs names and values")
	}
	made := map[string]any{}
	for i := 0; i < len(pairs); i += 2 {
		made[fmt.Sprint(pairs[i])] = pairs[i+1]
	}
	return made, nil
}

// shownState is a state as people see it.
type shownState struct {
	// Name is the word, Class the colour, Exact the state and the status of the API.
	Name, Class, Exact string
}

// stateOf takes a job.State or its text.
func stateOf(state any, held bool) shownState {
	exact := job.State(fmt.Sprint(state))
	names := map[job.State]string{
		job.Created: "Scheduled", job.Queued: "Queued", job.Running: "Running", job.Retry: "Retrying",
		job.Succeeded: "Succeeded", job.Dead: "Dead", job.Canceled: "Canceled",
	}
	shown := shownState{Name: names[exact], Class: string(exact), Exact: fmt.Sprintf("state %s, status %s", exact, exact.Status())}
	if exact == job.Created && held {
		shown.Name, shown.Class = "Held", "held"
	}
	return shown
}

// zips are used again, because each takes most of a megabyte, far more than any page.
var zips = sync.Pool{New: func() any { return gzip.NewWriter(nil) }}

func compress(body []byte) []byte {
	compressed := &bytes.Buffer{}
	zip := zips.Get().(*gzip.Writer) //nolint:forcetypeassert // nothing else is in it
	defer zips.Put(zip)
	zip.Reset(compressed)
	_, _ = zip.Write(body) // A buffer takes everything.
	_ = zip.Close()
	return compressed.Bytes()
}
